#include "jni_guard.h"

namespace millrace::jni {

namespace {

struct {
  jclass invalid;
  jclass state;
  jclass native;
  jmethodID native_constructor;  // (String code, String message)
  jclass string;
  jmethodID string_from_bytes;  // String(byte[], Charset)
  jmethodID bytes_of_string;    // getBytes(Charset)
  jobject utf8;
} cached;

jclass global_class(JNIEnv* env, const char* name) {
  jclass local = env->FindClass(name);
  if (local == nullptr) return nullptr;
  jclass global = static_cast<jclass>(env->NewGlobalRef(local));
  env->DeleteLocalRef(local);
  return global;
}

bool load_utf8(JNIEnv* env) {
  jclass charsets = env->FindClass("java/nio/charset/StandardCharsets");
  if (charsets == nullptr) return false;
  jfieldID field = env->GetStaticFieldID(charsets, "UTF_8", "Ljava/nio/charset/Charset;");
  if (field == nullptr) return false;
  jobject utf8 = env->GetStaticObjectField(charsets, field);
  cached.utf8 = env->NewGlobalRef(utf8);
  env->DeleteLocalRef(utf8);
  env->DeleteLocalRef(charsets);
  return cached.utf8 != nullptr;
}

}  // namespace

bool load_exception_classes(JNIEnv* env) {
  cached.invalid = global_class(env, "java/lang/IllegalArgumentException");
  if (cached.invalid == nullptr) return false;
  cached.state = global_class(env, "java/lang/IllegalStateException");
  if (cached.state == nullptr) return false;
  cached.native = global_class(env, "dev/millrace/core/NativeException");
  if (cached.native == nullptr) return false;
  cached.native_constructor =
      env->GetMethodID(cached.native, "<init>", "(Ljava/lang/String;Ljava/lang/String;)V");
  if (cached.native_constructor == nullptr) return false;
  cached.string = global_class(env, "java/lang/String");
  if (cached.string == nullptr) return false;
  cached.string_from_bytes =
      env->GetMethodID(cached.string, "<init>", "([BLjava/nio/charset/Charset;)V");
  if (cached.string_from_bytes == nullptr) return false;
  cached.bytes_of_string =
      env->GetMethodID(cached.string, "getBytes", "(Ljava/nio/charset/Charset;)[B");
  if (cached.bytes_of_string == nullptr) return false;
  return load_utf8(env);
}

void raise(JNIEnv* env, Code code, const std::string& message) {
  if (env->ExceptionCheck()) return;
  jstring text = to_java(env, message);
  if (text == nullptr) return;  // an OutOfMemoryError is pending
  if (code == Code::kInvalid || code == Code::kState) {
    jclass type = code == Code::kInvalid ? cached.invalid : cached.state;
    jmethodID constructor = env->GetMethodID(type, "<init>", "(Ljava/lang/String;)V");
    if (constructor == nullptr) return;
    jobject exception = env->NewObject(type, constructor, text);
    if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
    return;
  }
  jstring code_text = to_java(env, to_string(code));
  if (code_text == nullptr) return;
  jobject exception = env->NewObject(cached.native, cached.native_constructor, code_text, text);
  if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
}

std::string text_of(JNIEnv* env, jstring text) {
  if (text == nullptr) throw Failure(Code::kInvalid, "null text");
  jbyteArray bytes =
      static_cast<jbyteArray>(env->CallObjectMethod(text, cached.bytes_of_string, cached.utf8));
  if (env->ExceptionCheck() || bytes == nullptr) {
    throw Failure(Code::kResource, "no memory for a text");
  }
  const jsize length = env->GetArrayLength(bytes);
  std::string result(static_cast<size_t>(length), '\0');
  env->GetByteArrayRegion(bytes, 0, length, reinterpret_cast<jbyte*>(result.data()));
  if (env->ExceptionCheck()) throw Failure(Code::kBug, "a text changed its length");
  env->DeleteLocalRef(bytes);
  return result;
}

jstring to_java(JNIEnv* env, const std::string& utf8) {
  const jsize length = static_cast<jsize>(utf8.size());
  jbyteArray bytes = env->NewByteArray(length);
  if (bytes == nullptr) return nullptr;
  env->SetByteArrayRegion(bytes, 0, length, reinterpret_cast<const jbyte*>(utf8.data()));
  jobject result = env->NewObject(cached.string, cached.string_from_bytes, bytes, cached.utf8);
  env->DeleteLocalRef(bytes);
  return static_cast<jstring>(result);
}

}  // namespace millrace::jni
