#include "runtime/safetensors.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "runtime/durable_file.h"
#include "runtime/message.h"

namespace l3c::runtime {
namespace {

using tensor::DType;

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::kBool, "BOOL"}, {DType::kU8, "U8"},   {DType::kI32, "I32"}, {DType::kI64, "I64"},
    {DType::kU32, "U32"},   {DType::kU64, "U64"}, {DType::kF32, "F32"}, {DType::kF64, "F64"}};

constexpr uint64_t kMaxHeader = uint64_t{100} << 20;

}  // namespace

absl::StatusOr<std::string> WriteSafetensors(const std::string& path,
                                             const std::vector<TensorView>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    std::string_view dtype;
    for (const auto& [known, name] : kNames) {
      if (known == tensor.dtype) dtype = name;
    }
    header[tensor.name] = {{"dtype", dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begins at a multiple of eight
  const auto length = static_cast<uint64_t>(text.size());
  std::vector<Bytes> parts = {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(text))};
  for (const TensorView& tensor : tensors) parts.push_back(tensor.bytes);
  return WriteDurably(path, parts);
}

absl::StatusOr<std::map<std::string, StoredTensor>> ReadSafetensors(const std::string& path) {
  const auto bad = [&](std::string_view message) {
    return absl::InvalidArgumentError(Message(path, ": ", message));
  };
  std::error_code error;
  // No pipe, which could keep the stream below waiting for ever.
  if (!std::filesystem::is_regular_file(path, error)) return bad("not a regular file");
  const uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return bad("cannot be opened");
  uint64_t length = 0;
  if (size < 8 || !file.read(reinterpret_cast<char*>(&length), 8)) return bad("truncated");
  if (length > kMaxHeader || length > size - 8) return bad("not a safetensors file");
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) return bad("truncated");
  const auto header = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!header.is_object()) return bad("the header is damaged");
  const uint64_t data = size - 8 - length;
  std::map<std::string, StoredTensor> tensors;
  uint64_t next = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    StoredTensor tensor;
    uint64_t begin = 0, end = 0;
    try {
      const auto dtype = entry.at("dtype").get<std::string>();
      bool known = false;
      for (const auto& [value, spelling] : kNames) {
        if (spelling != dtype) continue;
        tensor.dtype = value;
        known = true;
      }
      if (!known) return bad(Message("tensor '", name, "' has the unknown type ", dtype));
      tensor.shape = entry.at("shape").get<tensor::Shape>();
      begin = entry.at("data_offsets").at(0).get<uint64_t>();
      end = entry.at("data_offsets").at(1).get<uint64_t>();
    } catch (const nlohmann::json::exception&) {
      return bad(Message("the header entry of tensor '", name, "' is damaged"));
    }
    double bytes = static_cast<double>(tensor::SizeOf(tensor.dtype));
    for (int64_t extent : tensor.shape) bytes *= static_cast<double>(extent);
    if (begin != next || end < begin || end > data || bytes != static_cast<double>(end - begin)) {
      return bad(Message("tensor '", name, "' does not lie where the header says"));
    }
    next = end;
    tensor.bytes.resize(end - begin);
    if (!file.read(reinterpret_cast<char*>(tensor.bytes.data()),
                   static_cast<std::streamsize>(end - begin))) {
      return bad("truncated");
    }
    tensors.emplace(name, std::move(tensor));
  }
  if (next != data) return bad("bytes follow the last tensor");
  return tensors;
}

}  // namespace l3c::runtime
