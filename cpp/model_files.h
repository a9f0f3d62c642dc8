// ModelFiles: which files an MJCF model would read, and whether they stay inside its folder.
//
// The robot file of a user is input, so before MuJoCo opens anything the XML text is scanned,
// includes recursively, for every attribute that names a file or a folder. Absolute paths, `..`,
// symbolic links that leave the folder, special files, more than 16 levels of includes and more
// than 64 MiB of XML are refused. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

namespace millrace {

// One element of an XML text: its tag and the attributes as written.
struct XmlElement {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;
};

// Tags and attributes in document order; comments, declarations and text are skipped. Broken XML
// gives what could be read: the XML parser proper reports the error.
std::vector<XmlElement> scan_xml(const std::string& text);

// Throws Failure(kInvalid) naming file and reason if the model reads anything outside its folder.
void confine_model_files(const std::string& model_path);

}  // namespace millrace
