// objc_ref<T>: one reference to an Objective-C object, as metal/ keeps it without ARC. T is a
// pointer to a class or an id of a protocol. Objective-C++ only; any thread.
#pragma once

#import <Foundation/Foundation.h>

#include <utility>

namespace millrace {

template <class T>
class objc_ref {
 public:
  objc_ref() = default;
  // Of a method whose name begins with new, alloc or copy: its reference becomes ours.
  static objc_ref adopt(T object) {
    objc_ref ref;
    ref.object_ = object;
    return ref;
  }
  // Of any other method: what it answers belongs to the autorelease pool.
  static objc_ref retain(T object) { return adopt([object retain]); }

  objc_ref(const objc_ref& other) : object_([other.object_ retain]) {}
  objc_ref(objc_ref&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  objc_ref& operator=(objc_ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~objc_ref() { [object_ release]; }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

}  // namespace millrace
