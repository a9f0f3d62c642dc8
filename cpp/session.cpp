#include "session.h"

#include "player.h"
#include "run.h"

namespace millrace {

std::unique_ptr<Session> open_session(const nlohmann::json& config) {
  const std::string mode = config.value("mode", "train");
  if (mode == "train") return std::make_unique<Run>(config);
  if (mode == "play") return std::make_unique<Player>(config);
  throw Failure(Code::kInvalid, "mode: '" + mode + "' is not one of train, play");
}

}  // namespace millrace
