// Runs the body of a native method; no C++ exception crosses into the JVM. kInvalid becomes
// IllegalArgumentException, kState IllegalStateException, the rest
// dev.millrace.core.NativeException with its code.
#pragma once

#include <jni.h>

#include <exception>
#include <string>

#include "status.h"

namespace millrace::jni {

// Called once from JNI_OnLoad; false with a pending exception when a class is missing.
bool load_exception_classes(JNIEnv* env);

void raise(JNIEnv* env, Code code, const std::string& message);

template <typename Result, typename Body>
Result guarded(JNIEnv* env, Result when_failed, Body body) {
  try {
    return body();
  } catch (const Failure& failure) {
    raise(env, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    raise(env, Code::kResource, "out of memory");
  } catch (const std::exception& error) {
    raise(env, Code::kBug, error.what());
  } catch (...) {
    raise(env, Code::kBug, "unknown native error");
  }
  return when_failed;
}

// UTF-8 text of a Java string, also for characters outside the basic plane.
std::string text_of(JNIEnv* env, jstring text);
jstring to_java(JNIEnv* env, const std::string& utf8);

}  // namespace millrace::jni
