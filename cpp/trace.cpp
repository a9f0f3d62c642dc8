#include "trace.h"

#include <cerrno>
#include <chrono>
#include <cstring>

namespace millrace {
namespace {

constexpr size_t kMaxPending = 16384;     // records; about 0.8 MiB
constexpr size_t kWriteAt = 1024;         // records that are worth waking the writer for
constexpr uint64_t kReservedBytes = 256;  // of the cap, for the end of the file
const char* const kHeader = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";

// Small numbers in order of first use: easier to read than the system's.
uint32_t track_of_this_thread() {
  static std::atomic<uint32_t> next{1};
  thread_local const uint32_t track = next.fetch_add(1);
  return track;
}

std::string category_of(const char* name) {
  const char* slash = std::strchr(name, '/');
  return slash != nullptr ? std::string(name, slash) : std::string(name);
}

std::string microseconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", static_cast<double>(ns) * 1e-3);
  return text;
}

}  // namespace

uint64_t Trace::now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Trace::Trace(const std::string& path, uint64_t max_bytes, FirstError& first_error)
    : max_bytes_(max_bytes),
      start_ns_(now_ns()),
      first_error_(first_error),
      file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) {
    throw Failure(Code::kResource, "cannot write the trace " + path + ": " + std::strerror(errno));
  }
  pending_.reserve(kMaxPending);
  writer_ = std::thread([this] { write_loop(); });
}

Trace::~Trace() { close(); }

void Trace::name_thread(const char* name) { name_track(track_of_this_thread(), name); }

void Trace::name_track(uint32_t track, const char* name) {
  add({Kind::kThreadName, track, name, start_ns_, start_ns_, 0});
}

void Trace::complete(const char* name, uint64_t begin_ns, uint64_t end_ns) {
  complete_on(track_of_this_thread(), name, begin_ns, end_ns);
}

void Trace::complete_on(uint32_t track, const char* name, uint64_t begin_ns, uint64_t end_ns) {
  add({Kind::kSpan, track, name, begin_ns, end_ns, 0});
}

void Trace::counter(const char* name, double value) {
  const uint64_t now = now_ns();
  add({Kind::kCounter, track_of_this_thread(), name, now, now, value});
}

void Trace::add(const Record& record) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_closing_ || pending_.size() >= kMaxPending) {
    dropped_.fetch_add(1);
    return;
  }
  pending_.push_back(record);
  if (pending_.size() == kWriteAt) changed_.notify_one();
}

void Trace::write_loop() {
  std::vector<Record> records;
  records.reserve(kMaxPending);
  write_text(kHeader);
  for (bool is_closing = false; !is_closing;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return is_closing_ || pending_.size() >= kWriteAt; });
      is_closing = is_closing_;
      records.swap(pending_);
    }
    write(records);
    records.clear();
  }
  // The format wants no comma before the bracket, so the last event is one that is always there.
  write_text("{\"ph\":\"M\",\"name\":\"dropped\",\"pid\":1,\"tid\":0,\"args\":{\"records\":" +
             std::to_string(dropped_.load()) + "}}\n]}\n");
}

void Trace::write(const std::vector<Record>& records) {
  for (const Record& record : records) {
    const std::string track = std::to_string(record.track);
    const std::string begin = microseconds(record.begin_ns - start_ns_);
    std::string text;
    if (record.kind == Kind::kThreadName) {
      text = R"({"ph":"M","name":"thread_name","pid":1,"tid":)" + track + R"(,"args":{"name":")" +
             record.name + "\"}},\n";
    } else if (record.kind == Kind::kSpan) {
      text = R"({"ph":"X","name":")" + std::string(record.name) + R"(","cat":")" +
             category_of(record.name) + R"(","ts":)" + begin + R"(,"dur":)" +
             microseconds(record.end_ns - record.begin_ns) + R"(,"pid":1,"tid":)" + track + "},\n";
    } else {
      text = R"({"ph":"C","name":")" + std::string(record.name) + R"(","ts":)" + begin +
             R"(,"pid":1,"tid":)" + track + R"(,"args":{"value":)" + std::to_string(record.value) +
             "}},\n";
    }
    if (bytes_ + text.size() + kReservedBytes > max_bytes_) {
      dropped_.fetch_add(1);
      continue;
    }
    write_text(text);
    written_.fetch_add(1);
  }
}

void Trace::write_text(const std::string& text) {
  bytes_ += text.size();
  if (has_failed_ || std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
  has_failed_ = true;
  first_error_.set({"trace.write", written_.load(), "trace", Code::kResource,
                    std::string("cannot write the trace: ") + std::strerror(errno)});
}

void Trace::close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_closing_) return;
    is_closing_ = true;
  }
  changed_.notify_one();
  writer_.join();
  if (std::fclose(file_) != 0 && !has_failed_) {
    first_error_.set({"trace.close", written_.load(), "trace", Code::kResource,
                      std::string("cannot write the trace: ") + std::strerror(errno)});
  }
}

}  // namespace millrace
