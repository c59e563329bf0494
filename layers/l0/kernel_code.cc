#include "layers/l0/kernel_code.h"

#include <array>
#include <fstream>

namespace l3c::l0 {

std::string DescribeParam(const Param& param) {
  constexpr std::array<const char*, 3> kAccess = {"in", "out", "inout"};
  return std::string(kAccess[static_cast<size_t>(param.access)]) + " " +
         std::string(tensor::DTypeName(param.dtype)) + " " + tensor::ShapeToString(param.shape);
}

std::string SignatureOf(const Kernel& kernel) {
  std::string text = "(";
  for (const Param& param : kernel.params) {
    text += (text.size() > 1 ? ", " : "") + DescribeParam(param);
  }
  return text + ")";
}

std::optional<CodeClass> ReadSignature(std::string_view signature, const Kernel& kernel,
                                       std::string& fault) {
  const std::string wanted = SignatureOf(kernel);
  const size_t end = signature.rfind(')');
  if (end == std::string_view::npos || signature.substr(0, end + 1) != wanted) {
    fault = "its signature is '" + std::string(signature.substr(0, 400)) + "'; kernel '" +
            kernel.name + "' is declared '" + wanted + "'";
    return std::nullopt;
  }
  std::string_view name = signature.substr(end + 1);
  if (name.starts_with(' ')) name.remove_prefix(1);
  if (name == "exact") return CodeClass::kExact;
  if (name == "reassoc") return CodeClass::kReassoc;
  if (name == "fast") return CodeClass::kFast;
  fault = "its signature ends with '" + std::string(name.substr(0, 40)) +
          "' in place of how near it comes to the UOps";
  return std::nullopt;
}

std::optional<uint64_t> DigestOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  uint64_t hash = 0xcbf29ce484222325;
  std::array<char, 65536> block;
  do {
    file.read(block.data(), block.size());
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(block[static_cast<size_t>(i)])) * 0x100000001b3;
    }
  } while (file);
  if (file.bad()) return std::nullopt;
  return hash;
}

}  // namespace l3c::l0
