#include "selection_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace millrace {

namespace {

constexpr int kSchema = 1;

}  // namespace

SelectionCache::SelectionCache(std::string path, int64_t unix_time)
    : path_(std::move(path)), unix_time_(unix_time) {
  if (!path_.empty()) read();
}

void SelectionCache::read() {
  std::ifstream file(path_);
  if (!file) {
    if (errno != ENOENT) read_error_ = path_ + ": " + std::strerror(errno);
    return;
  }
  try {
    const nlohmann::json contents = nlohmann::json::parse(file);
    const int schema = contents.at("schema").get<int>();
    if (schema != kSchema) {
      read_error_ =
          path_ + ": its schema is " + std::to_string(schema) + ", not " + std::to_string(kSchema);
      return;
    }
    for (const nlohmann::json& each : contents.at("selections")) {
      entries_.push_back({each.at("name").get<std::string>(), selection_key_from(each.at("key")),
                          selection_from(each.at("selection")),
                          each.at("measured_at").get<int64_t>(),
                          each.at("used_at").get<int64_t>()});
    }
  } catch (const std::exception& error) {  // of the contents, or of a folder in its place
    entries_.clear();
    read_error_ = path_ + ": it is no selection cache: " + error.what();
  }
  drop_old();
}

void SelectionCache::drop_old() {
  const auto is_idle = [this](const Entry& entry) {
    return unix_time_ - entry.used_at > kIdleSeconds;
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_idle), entries_.end());
  if (entries_.size() <= kMostEntries) return;
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.used_at > b.used_at; });
  entries_.resize(kMostEntries);
}

SelectionCache::Entry* SelectionCache::entry_of(const std::string& name, const SelectionKey& key) {
  for (Entry& entry : entries_) {
    if (entry.name == name && entry.key.difference(key).empty()) return &entry;
  }
  return nullptr;
}

SelectionCache::Lookup SelectionCache::find(const std::string& name, const SelectionKey& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Entry* entry = entry_of(name, key)) {
    const bool is_newer = entry->used_at != unix_time_;
    entry->used_at = unix_time_;
    if (is_newer && !path_.empty()) write();
    return {entry->selection, ""};
  }
  if (!read_error_.empty()) return {std::nullopt, read_error_};
  // The one that was used last is the one that a user has in mind.
  const Entry* nearest = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.name != name) continue;
    if (nearest == nullptr || entry.used_at >= nearest->used_at) nearest = &entry;
  }
  if (nearest == nullptr) return {std::nullopt, "it was not measured before"};
  return {std::nullopt, "measured before for " + key.difference(nearest->key)};
}

void SelectionCache::put(const std::string& name, const SelectionKey& key,
                         const Selection& selection) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Entry* entry = entry_of(name, key)) {
    *entry = {name, key, selection, unix_time_, unix_time_};
  } else {
    entries_.push_back({name, key, selection, unix_time_, unix_time_});
  }
  drop_old();
  if (!path_.empty()) write();
}

nlohmann::json SelectionCache::contents() const {
  nlohmann::json selections = nlohmann::json::array();
  for (const Entry& entry : entries_) {
    selections.push_back({{"name", entry.name},
                          {"key", to_json(entry.key)},
                          {"selection", to_json(entry.selection)},
                          {"measured_at", entry.measured_at},
                          {"used_at", entry.used_at}});
  }
  return {{"schema", kSchema}, {"selections", std::move(selections)}};
}

// To a file beside it, then renamed into its place: a reader never sees half of it.
void SelectionCache::write() {
  const std::string beside = path_ + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream file(beside, std::ios::trunc);
  file << contents().dump(1) << "\n";
  file.close();
  const bool is_written = file && std::rename(beside.c_str(), path_.c_str()) == 0;
  write_error_ = is_written ? "" : path_ + ": " + std::strerror(errno);
  if (!is_written) std::remove(beside.c_str());
}

std::string SelectionCache::write_error() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return write_error_;
}

size_t SelectionCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace millrace
