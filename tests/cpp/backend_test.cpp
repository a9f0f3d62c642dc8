// Tests for cpp/backend.cpp and of the delayed test device.
#include "backend.h"

#include <gtest/gtest.h>

#include <vector>

#include "delayed_backend.h"

namespace millrace {
namespace {

TEST(Backends, CpuIsAvailableAndTheOthersSayWhatOrWhyNot) {
  const std::vector<BackendInfo> all = backends();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "cpu");
  EXPECT_TRUE(all[0].available);
  EXPECT_EQ(all[1].name, "cuda");
  EXPECT_EQ(all[2].name, "metal");
  for (const BackendInfo& info : all) {
    EXPECT_EQ(info.reason.empty(), info.available) << info.name;
    EXPECT_EQ(info.device.empty(), !info.available || info.name == "cpu") << info.name;
  }
}

TEST(Backends, AnUnavailableOrUnknownOneIsRefusedWithTheReason) {
  for (const BackendInfo& info : backends()) {
    if (info.available) {
      EXPECT_EQ(backend_api(info.name).name, info.name);
      continue;
    }
    try {
      backend_api(info.name);
      ADD_FAILURE() << info.name;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kUnavailable);
      EXPECT_EQ(failure.what(), "device " + info.name + " is unavailable: " + info.reason);
    }
  }
  try {
    backend_api("mps");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
  }
}

TEST(Backend, ADeviceThatDoesNotOpenSaysWhy) {
  BackendApi broken = backend_cpu();
  broken.open = [](void**) { return 7; };
  broken.last_error = [](void* device, BackendError* error) {
    EXPECT_EQ(device, nullptr);
    *error = {"wake", "here:1", 7, "it sleeps"};
  };
  try {
    Backend backend(broken);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kUnavailable);
    EXPECT_STREQ(failure.what(), "opening the device failed on cpu: wake at here:1: 7 it sleeps");
  }
}

TEST(Backend, RefusesAnotherInterfaceVersion) {
  BackendApi other = backend_cpu();
  other.api_version = kBackendApiVersion + 1;
  EXPECT_THROW(Backend{other}, Failure);
}

TEST(Stream, AnotherThreadThatSubmitsIsRefusedNamingBoth) {
  Backend backend(backend_cpu());
  Stream stream(backend);
  Event event(backend);
  stream.record(event);
  std::string message;
  std::thread other([&] {
    try {
      stream.record(event);
    } catch (const Failure& failure) {
      message = failure.what();
    }
  });
  other.join();
  EXPECT_NE(message.find("whose submit thread is"), std::string::npos) << message;
}

TEST(DelayedBackend, CompletesInOrderAndOnlyWhenStepped) {
  Backend backend(delayed_backend());
  Stream stream(backend);
  Event first(backend), second(backend);
  float source = 1, target = 0;
  stream.copy_rows(CopyDirection::kHostToDevice, &target, 4, &source, 4, 4, 1);
  stream.record(first);
  stream.record(second);
  source = 2;  // read when the copy runs
  EXPECT_FALSE(first.is_complete());
  DelayedDevice::of(backend).step();
  EXPECT_EQ(target, 2.0f);
  EXPECT_FALSE(first.is_complete());
  DelayedDevice::of(backend).step();
  EXPECT_TRUE(first.is_complete());
  EXPECT_FALSE(second.is_complete());
  second.wait();
  EXPECT_TRUE(second.is_complete());
}

}  // namespace
}  // namespace millrace
