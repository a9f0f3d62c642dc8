#include "metal_source.h"

#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace millrace {
namespace {

constexpr const char* kIncludeHead = "#include \"";
constexpr const char* kContractionOff = "#pragma METAL fp contract(off)\n";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

const MetalFile& file_named(const MetalFile* files, std::string_view name) {
  for (const MetalFile* file = files; file->name != nullptr; ++file) {
    if (file->name == name) return *file;
  }
  throw std::logic_error("the Metal library includes " + std::string(name) +
                         ", which was not embedded");
}

void append(const MetalFile* files, const MetalFile& file, std::set<std::string>& seen,
            std::string& text) {
  if (!seen.insert(file.name).second) return;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "#pragma once") continue;
    if (line.rfind(kIncludeHead, 0) == 0) {
      const size_t begin = std::string_view(kIncludeHead).size();
      append(files, file_named(files, line.substr(begin, line.size() - begin - 1)), seen, text);
      continue;
    }
    text += line + "\n";
  }
}

}  // namespace

std::string metal_source(const MetalFile* files) {
  std::set<std::string> seen;
  std::string text;
  for (const MetalFile* file = files; file->name != nullptr; ++file) {
    if (!ends_with(file->name, ".metal")) continue;
    text += kContractionOff;
    append(files, *file, seen, text);
  }
  return text;
}

}  // namespace millrace
