// SelectionCache: selections by key, kept across runs in a JSON file. A selection counts only for
// exactly its key; where there is one for the same program under another key, the reason says what
// differs. A file that cannot be read is no error: the cache starts empty and says why. Selections
// not used for 90 days and the least recently used beyond 1,000 are dropped.
//
// Any thread. One process writes the file at a time, as a whole; of two at once the last one wins,
// and the other one's programs are measured again.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "selection.h"

namespace millrace {

class SelectionCache {
 public:
  static constexpr size_t kMostEntries = 1000;
  static constexpr int64_t kIdleSeconds = 90 * 24 * 3600;

  // Reads the file if there is one. An empty path: nothing is kept. `unix_time`: seconds.
  SelectionCache(std::string path, int64_t unix_time);

  struct Lookup {
    std::optional<Selection> found;
    std::string why_not;  // if nothing was found
  };
  // `name`: of the program, as a person knows it.
  Lookup find(const std::string& name, const SelectionKey& key);
  // Puts it in the place of one with the same name and key, and writes the file. What keeps the
  // file from being written is no error of the run: write_error() has it.
  void put(const std::string& name, const SelectionKey& key, const Selection& selection);

  const std::string& path() const { return path_; }
  const std::string& read_error() const { return read_error_; }
  std::string write_error() const;
  size_t size() const;

 private:
  struct Entry {
    std::string name;
    SelectionKey key;
    Selection selection;
    int64_t measured_at, used_at;
  };
  // {schema, selections: [{name, key, selection, measured_at, used_at}]}
  nlohmann::json contents() const;
  void read();
  void write();
  void drop_old();
  Entry* entry_of(const std::string& name, const SelectionKey& key);

  const std::string path_;
  const int64_t unix_time_;
  std::string read_error_;
  mutable std::mutex mutex_;
  std::string write_error_;
  std::vector<Entry> entries_;
};

}  // namespace millrace
