#include "model_files.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "status.h"

namespace millrace {

namespace fs = std::filesystem;

namespace {

constexpr int kIncludeDepthMax = 16;
constexpr uint64_t kModelBytesMax = 64ull << 20;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Skips what starts at `open` with a fixed terminator; npos when it never ends.
size_t skip_past(const std::string& text, size_t open, const char* terminator) {
  const size_t end = text.find(terminator, open);
  return end == std::string::npos ? end : end + std::strlen(terminator);
}

// Reads the element whose '<' is at `at`; returns where it ends.
size_t read_element(const std::string& text, size_t at, XmlElement& element) {
  const size_t size = text.size();
  ++at;
  while (at < size && is_space(text[at])) ++at;
  while (at < size && !is_space(text[at]) && text[at] != '>' && text[at] != '/') {
    element.tag += text[at++];
  }
  while (at < size && text[at] != '>') {
    while (at < size && (is_space(text[at]) || text[at] == '/')) ++at;
    std::string name;
    while (at < size && !is_space(text[at]) && text[at] != '=' && text[at] != '>') {
      name += text[at++];
    }
    while (at < size && is_space(text[at])) ++at;
    if (at >= size || text[at] != '=') continue;
    ++at;
    while (at < size && is_space(text[at])) ++at;
    if (at >= size || (text[at] != '"' && text[at] != '\'')) continue;
    const size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos) return size;
    element.attributes.emplace_back(std::move(name), text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return at + 1;
}

bool names_folder(const XmlElement& element, const std::string& attribute) {
  return element.tag == "compiler" &&
         (attribute == "meshdir" || attribute == "texturedir" || attribute == "assetdir");
}

// file, and the fileright, fileleft, … of cube textures.
bool names_file(const std::string& attribute) { return attribute.compare(0, 4, "file") == 0; }

bool is_model_file(const XmlElement& element) {
  return element.tag == "include" || element.tag == "model";
}

// One scan of a model and of what it includes.
class Confinement {
 public:
  explicit Confinement(const fs::path& model_path)
      : folder_(model_path.parent_path().empty() ? fs::path(".") : model_path.parent_path()),
        canonical_folder_(fs::canonical(folder_)) {
    read(model_path, 0);
    for (const Reference& reference : references_) check_links(reference);
  }

 private:
  struct Reference {
    fs::path from;  // the XML file that names it
    std::string value;
  };

  [[noreturn]] static void refuse(const fs::path& from, const std::string& reason) {
    throw Failure(Code::kInvalid, "model file '" + from.string() + "': " + reason);
  }

  static void check_text(const fs::path& from, const std::string& attribute,
                         const std::string& value) {
    const std::string named = attribute + "=\"" + value + "\" ";
    // An entity could hide any of the characters tested for below.
    if (value.find('&') != std::string::npos) refuse(from, named + "holds an XML entity");
    if (value.find('\\') != std::string::npos) refuse(from, named + "holds a backslash");
    if (value.find(':') != std::string::npos) refuse(from, named + "holds a colon");
    const fs::path path(value);
    if (path.is_absolute()) refuse(from, named + "is an absolute path");
    for (const fs::path& part : path) {
      if (part == "..") refuse(from, named + "leaves the model's folder");
    }
  }

  std::string read_text(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) refuse(file, "is not there or is not a regular file");
    const uint64_t bytes = fs::file_size(file);
    bytes_read_ += bytes;
    if (bytes_read_ > kModelBytesMax) refuse(file, "the model's XML is larger than 64 MiB");
    std::ifstream stream(file, std::ios::binary);
    std::string text(bytes, '\0');
    stream.read(&text[0], static_cast<std::streamsize>(bytes));
    if (!stream) refuse(file, "cannot be read");
    return text;
  }

  void read(const fs::path& file, int depth) {
    if (depth > kIncludeDepthMax) refuse(file, "includes are nested more than 16 deep");
    if (!read_files_.insert(fs::weakly_canonical(file).string()).second) return;
    std::vector<std::string> included;
    for (const XmlElement& element : scan_xml(read_text(file))) {
      for (const auto& [attribute, value] : element.attributes) {
        const bool is_folder = names_folder(element, attribute);
        if (!is_folder && !names_file(attribute)) continue;
        if (value.empty()) continue;
        check_text(file, attribute, value);
        if (is_folder) {
          asset_folders_.insert(value);
        } else {
          references_.push_back({file, value});
          if (is_model_file(element)) included.push_back(value);
        }
      }
    }
    for (const std::string& value : included) {
      // MuJoCo versions differ in which folder an include of an include is relative to.
      const std::set<fs::path> candidates = {folder_ / value, file.parent_path() / value};
      for (const fs::path& candidate : candidates) {
        std::error_code error;
        if (!fs::exists(candidate, error)) continue;
        check_inside({file, value}, candidate);
        read(candidate, depth + 1);
      }
    }
  }

  void check_inside(const Reference& reference, const fs::path& candidate) const {
    std::error_code error;
    const fs::path target = fs::canonical(candidate, error);
    if (error) return;  // nothing there: MuJoCo reports what is missing
    const fs::path inside = target.lexically_relative(canonical_folder_);
    if (inside.empty() || *inside.begin() == "..") {
      refuse(reference.from,
             "\"" + reference.value + "\" is a link that leaves the model's folder");
    }
    if (!fs::is_regular_file(target, error)) {
      refuse(reference.from, "\"" + reference.value + "\" is not a regular file");
    }
  }

  void check_links(const Reference& reference) const {
    const std::string base_name = fs::path(reference.value).filename().string();
    for (const fs::path& start : {folder_, reference.from.parent_path()}) {
      for (const std::string& folder : asset_folders_) {
        check_inside(reference, start / folder / reference.value);
        check_inside(reference, start / folder / base_name);  // compiler strippath
      }
    }
  }

  fs::path folder_;
  fs::path canonical_folder_;
  uint64_t bytes_read_ = 0;
  std::set<std::string> read_files_;
  std::set<std::string> asset_folders_ = {""};
  std::vector<Reference> references_;
};

}  // namespace

std::vector<XmlElement> scan_xml(const std::string& text) {
  std::vector<XmlElement> elements;
  size_t at = 0;
  while ((at = text.find('<', at)) != std::string::npos) {
    if (text.compare(at, 4, "<!--") == 0) {
      at = skip_past(text, at + 4, "-->");
    } else if (text.compare(at, 9, "<![CDATA[") == 0) {
      at = skip_past(text, at + 9, "]]>");
    } else if (text.compare(at, 2, "<?") == 0) {
      at = skip_past(text, at + 2, "?>");
    } else if (text.compare(at, 2, "<!") == 0 || text.compare(at, 2, "</") == 0) {
      at = skip_past(text, at + 2, ">");
    } else {
      XmlElement element;
      at = read_element(text, at, element);
      elements.push_back(std::move(element));
    }
    if (at == std::string::npos || at >= text.size()) break;
  }
  return elements;
}

void confine_model_files(const std::string& model_path) {
  const fs::path path(model_path);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw Failure(Code::kInvalid, "model file '" + model_path + "' is a folder, no MJCF file");
  }
  if (!fs::is_regular_file(path, error)) {
    throw Failure(Code::kInvalid, "model file '" + model_path + "' is not there");
  }
  try {
    Confinement confinement(path);
  } catch (const fs::filesystem_error& failed) {
    throw Failure(Code::kInvalid, "model file '" + model_path + "': " + failed.what());
  }
}

}  // namespace millrace
