#include "tools/program/program.h"

#include <zlib.h>

#include "layers/l0/plan_tables.h"
#include "layers/support/binary.h"

namespace l3c::program {
namespace {

constexpr uint64_t kMaxText = uint64_t{64} << 20;

}  // namespace

template <class Archive>
void Fields(Archive& archive, Program::Text& x) {
  archive(x.layer, x.size, x.deflated);
}
template <class Archive>
void Fields(Archive& archive, Program& x) {
  archive(x.version, x.file, x.features, x.digest, x.data, x.texts, x.kernels, x.control);
}

std::string Write(const Program& program) {
  support::BinaryWriter writer;
  writer(program, l0::WritePlanTables(program.plan));
  return writer.Take();
}

std::optional<Program> Read(std::string_view bytes) {
  support::BinaryReader reader(bytes);
  Program program;
  std::string tables;
  reader(program, tables);
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  std::optional<l0::Plan> plan = l0::ReadPlanTables(tables);
  if (!plan || plan->kernels.size() != program.kernels.size() ||
      plan->control.size() != program.control.size()) {
    return std::nullopt;
  }
  program.plan = *std::move(plan);
  return program;
}

Program::Text Deflate(uint8_t layer, std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string deflated(size, '\0');
  compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
            reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
  deflated.resize(size);
  return {layer, text.size(), std::move(deflated)};
}

std::optional<std::string> Inflate(const Program::Text& text) {
  if (text.size > kMaxText) return std::nullopt;
  std::string out(text.size, '\0');
  uLongf size = out.size();
  if (uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                 reinterpret_cast<const Bytef*>(text.deflated.data()),
                 text.deflated.size()) != Z_OK ||
      size != out.size()) {
    return std::nullopt;
  }
  return out;
}

}  // namespace l3c::program
