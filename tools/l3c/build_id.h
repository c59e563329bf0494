// Which program this is.
#pragma once

#include <string>

namespace l3c::tools {

// The linker's digest of this executable; its size and date where it has none. Two programs of one
// id compile alike.
const std::string& BuildId();

}  // namespace l3c::tools
