// BackendPlugin: a device's library, libmillrace_<name>, opened at run time from beside the
// library (or test program) that this code is part of. A plug-in that cannot be had leaves a
// reason; one that can be had stays loaded until the process ends. Any thread.
#pragma once

#include <string>

#include "backend.h"

namespace millrace {

struct BackendPlugin {
  const BackendApi* api;  // null: cannot be had
  std::string text;       // what the device is, or the reason why it cannot be had
};

BackendPlugin open_backend_plugin(const std::string& name, const std::string& folder);
// What an entry that was found answers; a table of another version is refused.
BackendPlugin ask_backend_entry(BackendEntry* entry);
// The folder of the file that holds this code.
std::string own_folder();

}  // namespace millrace
