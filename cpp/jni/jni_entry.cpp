// The native methods of dev.millrace.core.NativeCore; its Javadoc is their contract.
#include <cstring>

#include "bench.h"
#include "blas_threads.h"
#include "catalog.h"
#include "jni_guard.h"
#include "motion_command.h"
#include "preflight.h"
#include "session_table.h"

namespace millrace::jni {

namespace {

SessionTable& sessions() {
  static SessionTable table;
  return table;
}

nlohmann::json parse(JNIEnv* env, jstring text) {
  try {
    return nlohmann::json::parse(text_of(env, text));
  } catch (const nlohmann::json::parse_error& error) {
    throw Failure(Code::kBug, std::string("malformed control message: ") + error.what());
  }
}

// The values come from Java's records; a wrong type is still the caller's input.
template <typename Body>
jstring answer(JNIEnv* env, Body body) {
  return guarded(env, static_cast<jstring>(nullptr), [&] {
    try {
      return to_java(env, body().dump());
    } catch (const nlohmann::json::exception& error) {
      throw Failure(Code::kInvalid, std::string("configuration: ") + error.what());
    }
  });
}

jstring describe(JNIEnv* env, jclass) {
  return answer(env, [] { return describe_library(); });
}

jstring preflight(JNIEnv* env, jclass, jstring config) {
  return answer(env, [&] { return run_preflight(parse(env, config)); });
}

jlong open(JNIEnv* env, jclass, jstring config) {
  return guarded(env, static_cast<jlong>(0), [&] {
    try {
      return static_cast<jlong>(sessions().add(open_session(parse(env, config))));
    } catch (const nlohmann::json::exception& error) {
      throw Failure(Code::kInvalid, std::string("configuration: ") + error.what());
    }
  });
}

jstring facts(JNIEnv* env, jclass, jlong run) {
  return answer(env, [&] { return sessions().get_as_owner(run)->facts(); });
}

jstring advance(JNIEnv* env, jclass, jlong run, jlong ticks) {
  return answer(env, [&] {
    if (ticks < 0) throw Failure(Code::kInvalid, "ticks must not be negative");
    return sessions().get_as_owner(run)->advance(static_cast<uint64_t>(ticks));
  });
}

void stop(JNIEnv* env, jclass, jlong run) {
  guarded(env, 0, [&] {
    sessions().get(run)->stop();
    return 0;
  });
}

jstring tensors(JNIEnv* env, jclass, jlong run) {
  return answer(env, [&] {
    nlohmann::json list = nlohmann::json::array();
    for (const StateTensor& tensor : sessions().get_as_owner(run)->registry().tensors()) {
      list.push_back({{"name", tensor.name},
                      {"dtype", to_string(tensor.dtype)},
                      {"shape", tensor.shape},
                      {"bytes", tensor.bytes()},
                      {"replay", tensor.is_replay}});
    }
    return list;
  });
}

const StateTensor& tensor_at(const Session& session, jint index) {
  const auto& tensors = session.registry().tensors();
  if (index < 0 || static_cast<size_t>(index) >= tensors.size()) {
    throw Failure(Code::kInvalid, "no tensor " + std::to_string(index));
  }
  return tensors[static_cast<size_t>(index)];
}

uint64_t unsigned_offset(jlong offset) {
  if (offset < 0) throw Failure(Code::kInvalid, "a negative offset in a tensor");
  return static_cast<uint64_t>(offset);
}

struct DirectBuffer {
  void* address;
  jlong bytes;
};

DirectBuffer direct(JNIEnv* env, jobject buffer) {
  void* address = buffer == nullptr ? nullptr : env->GetDirectBufferAddress(buffer);
  if (address == nullptr) throw Failure(Code::kInvalid, "a direct buffer is needed");
  return {address, env->GetDirectBufferCapacity(buffer)};
}

// `target` is a slice: position 0, its capacity is what is copied.
void read(JNIEnv* env, jclass, jlong run, jint tensor, jlong offset, jobject target) {
  guarded(env, 0, [&] {
    const DirectBuffer buffer = direct(env, target);
    const auto session = sessions().get_as_owner(run);
    tensor_at(*session, tensor)
        .read(unsigned_offset(offset), buffer.address, static_cast<uint64_t>(buffer.bytes));
    return 0;
  });
}

void write(JNIEnv* env, jclass, jlong run, jint tensor, jlong offset, jobject source) {
  guarded(env, 0, [&] {
    const DirectBuffer buffer = direct(env, source);
    const auto session = sessions().get_as_owner(run);
    tensor_at(*session, tensor)
        .write(unsigned_offset(offset), buffer.address, static_cast<uint64_t>(buffer.bytes));
    return 0;
  });
}

void restored(JNIEnv* env, jclass, jlong run, jboolean with_replay) {
  guarded(env, 0, [&] {
    sessions().get_as_owner(run)->restored(with_replay == JNI_TRUE);
    return 0;
  });
}

jstring bench(JNIEnv* env, jclass, jstring request) {
  return answer(env, [&] { return run_bench(parse(env, request)); });
}

jstring motion(JNIEnv* env, jclass, jstring request) {
  return answer(env, [&] { return run_motion(parse(env, request)); });
}

jstring error(JNIEnv* env, jclass, jlong run) {
  return guarded(env, static_cast<jstring>(nullptr), [&]() -> jstring {
    const auto session = sessions().get(run);
    const auto first = session->first_error().get();
    if (!first) return nullptr;
    const nlohmann::json report = {
        {"operation", first->operation}, {"sequence", first->sequence},
        {"thread", first->thread},       {"code", to_string(first->code)},
        {"message", first->message},     {"later", session->first_error().later_count()}};
    return to_java(env, report.dump());
  });
}

void close(JNIEnv* env, jclass, jlong run) {
  guarded(env, 0, [&] {
    sessions().take(run).reset();
    return 0;
  });
}

template <typename Function>
JNINativeMethod method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

}  // namespace millrace::jni

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  using namespace millrace::jni;
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  millrace::restore_blas_environment();
  if (!load_exception_classes(env)) return JNI_ERR;
  jclass core = env->FindClass("dev/millrace/core/NativeCore");
  if (core == nullptr) return JNI_ERR;
  const JNINativeMethod methods[] = {
      method("describe", "()Ljava/lang/String;", describe),
      method("preflight", "(Ljava/lang/String;)Ljava/lang/String;", preflight),
      method("open", "(Ljava/lang/String;)J", open),
      method("facts", "(J)Ljava/lang/String;", facts),
      method("advance", "(JJ)Ljava/lang/String;", advance),
      method("stop", "(J)V", stop),
      method("tensors", "(J)Ljava/lang/String;", tensors),
      method("read", "(JIJLjava/nio/ByteBuffer;)V", read),
      method("write", "(JIJLjava/nio/ByteBuffer;)V", write),
      method("restored", "(JZ)V", restored),
      method("bench", "(Ljava/lang/String;)Ljava/lang/String;", bench),
      method("motion", "(Ljava/lang/String;)Ljava/lang/String;", motion),
      method("error", "(J)Ljava/lang/String;", error),
      method("close", "(J)V", close),
  };
  const jint registered =
      env->RegisterNatives(core, methods, static_cast<jint>(sizeof methods / sizeof methods[0]));
  env->DeleteLocalRef(core);
  return registered == JNI_OK ? JNI_VERSION_10 : JNI_ERR;
}
