// Links relocatable objects of x86-64 into two runs of bytes that have their place in an
// executable: code, and the constants that it reads.
//
// What a code generator makes of kernels is all that it knows: sections of code and of read-only
// data, references that are relative to the place where they stand (so the whole may be moved), and
// calls of functions outside by name. Anything else is an error that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace l3c::elf {

class ObjectLinker {
 public:
  // Reads an ELF object; InvalidArgument when it is none, or holds something else than the above.
  absl::Status Add(std::span<const char> object);
  // Code that refers to nothing, as a function of its own.
  void AddFunction(const std::string& name, std::span<const std::byte> code);

  size_t code_size() const { return code_.size(); }
  size_t constants_size() const { return constants_.size(); }
  // Where a function of the objects begins, counted from the first byte of the code. NotFound.
  absl::StatusOr<uint64_t> OffsetOf(const std::string& function) const;

  struct Linked {
    std::string code;
    std::string constants;
  };
  // `outside`: addresses of the functions that the objects call and do not define.
  absl::StatusOr<Linked> Link(uint64_t code_address, uint64_t constants_address,
                              const std::map<std::string, uint64_t>& outside) const;

 private:
  enum class Part : uint8_t { kNone, kCode, kConstants, kOutside };
  struct Place {
    Part part = Part::kNone;
    uint64_t offset = 0;
    std::string name;  // of a function outside
  };
  struct Reference {
    Place at;       // the bytes to fill
    int bytes = 4;  // 4 or 8
    Place to;
    int64_t addend = 0;
  };

  std::string code_;
  std::string constants_;
  std::map<std::string, uint64_t> functions_;
  std::vector<Reference> references_;
};

}  // namespace l3c::elf
