// JSON as the commands print it: an object a line.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace l3c::tools {

// Without line breaks. Strings of a program may hold any bytes; what is no UTF-8 is replaced.
inline std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace l3c::tools
