#include "runtime/array_file.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "layers/support/printer.h"
#include "runtime/message.h"
#include "runtime/regular_file.h"

namespace l3c::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);

struct TypeEntry {
  Stored type;
  std::string_view name;
  size_t size;
};
constexpr TypeEntry kTypes[] = {
    {Stored::kBool, "bool", 1}, {Stored::kU8, "u8", 1},   {Stored::kI8, "i8", 1},
    {Stored::kU16, "u16", 2},   {Stored::kI16, "i16", 2}, {Stored::kU32, "u32", 4},
    {Stored::kI32, "i32", 4},   {Stored::kU64, "u64", 8}, {Stored::kI64, "i64", 8},
    {Stored::kF32, "f32", 4},   {Stored::kF64, "f64", 8}};

std::string_view Strip(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find_first_of(separators);
    parts.push_back(Strip(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class T>
bool ParseNumber(std::string_view text, T* value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size();
}

std::string Extents(const std::vector<int64_t>& extents) {
  std::vector<std::string> parts;
  for (int64_t extent : extents) parts.push_back(std::to_string(extent));
  return support::Join(parts, " x ");
}

absl::Status Bad(const std::string& path, std::string_view message) {
  return absl::InvalidArgumentError(Message(path, ": ", message));
}

// The bytes of a file, decompressed on the way if it is compressed.
class Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path) {
    absl::StatusOr<RegularFile> opened = RegularFile::Open(path);
    if (!opened.ok()) return opened.status();
    std::FILE* file = fdopen(opened->fd(), "rb");
    if (file == nullptr) return Bad(path, "out of memory");
    opened->Release();
    auto reader = std::unique_ptr<Reader>(new Reader(path, file));
    reader->Refill();
    const auto& in = reader->input_;
    reader->compressed_ = in.size() >= 2 && in[0] == 0x1F && in[1] == 0x8B;
    if (reader->compressed_) {
      // 15 bits of window, 16: a gzip header.
      if (inflateInit2(&reader->stream_, 15 + 16) != Z_OK) return Bad(path, "out of memory");
      reader->inflating_ = true;
    }
    return reader;
  }

  ~Reader() {
    if (inflating_) inflateEnd(&stream_);
    std::fclose(file_);
  }

  // Up to `size` bytes; fewer only at the end.
  absl::StatusOr<size_t> Read(std::byte* out, size_t size) {
    size_t done = 0;
    while (done < size) {
      if (position_ == input_.size() && !Refill()) {
        if (compressed_ && !at_member_end_) {
          return Bad(path_, "truncated: the compressed data ends in the middle");
        }
        break;
      }
      if (!compressed_) {
        const size_t part = std::min(size - done, input_.size() - position_);
        std::memcpy(out + done, input_.data() + position_, part);
        position_ += part;
        done += part;
        continue;
      }
      if (at_member_end_) {
        // Another member may follow; anything else does not belong here.
        if (input_[position_] != 0x1F) return Bad(path_, "bytes follow the compressed data");
        inflateReset(&stream_);
        at_member_end_ = false;
      }
      stream_.next_in = input_.data() + position_;
      stream_.avail_in = static_cast<uInt>(input_.size() - position_);
      const size_t part = std::min<size_t>(size - done, size_t{1} << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(out + done);
      stream_.avail_out = static_cast<uInt>(part);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      position_ = input_.size() - stream_.avail_in;
      done += part - stream_.avail_out;
      if (result == Z_STREAM_END) {
        at_member_end_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Bad(path_,
                   Message("the compressed data is damaged", stream_.msg == nullptr ? "" : ": ",
                           stream_.msg == nullptr ? "" : stream_.msg));
      }
    }
    return done;
  }

  // Nothing may follow.
  absl::Status ExpectEnd() {
    std::byte extra;
    absl::StatusOr<size_t> more = Read(&extra, 1);
    if (!more.ok()) return more.status();
    if (*more > 0) return Bad(path_, "bytes follow the last element");
    return absl::OkStatus();
  }

  const std::string& path() const { return path_; }

 private:
  Reader(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  bool Refill() {
    input_.resize(size_t{1} << 18);
    input_.resize(std::fread(input_.data(), 1, input_.size(), file_));
    position_ = 0;
    return !input_.empty();
  }

  std::string path_;
  std::FILE* file_;
  std::vector<unsigned char> input_;
  size_t position_ = 0;
  bool compressed_ = false;
  bool inflating_ = false;
  bool at_member_end_ = false;
  z_stream stream_ = {};
};

absl::Status ReadHeader(Reader& reader, std::byte* out, size_t size, std::string_view what) {
  absl::StatusOr<size_t> got = reader.Read(out, size);
  if (!got.ok()) return got.status();
  if (*got < size) return Bad(reader.path(), Message("truncated: no complete ", what));
  return absl::OkStatus();
}

// The number of bytes of an array, unless its extents are absurd.
std::optional<int64_t> ByteCount(const std::vector<int64_t>& extents, size_t element) {
  double bytes = static_cast<double>(element);
  for (int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    bytes *= static_cast<double>(extent);
  }
  if (bytes > static_cast<double>(int64_t{1} << 44)) return std::nullopt;
  int64_t count = static_cast<int64_t>(element);
  for (int64_t extent : extents) count *= extent;
  return count;
}

// Exactly the elements that the header promises. The memory grows with what is really there: a
// damaged header cannot ask for terabytes.
absl::Status ReadElements(Reader& reader, StoredArray& array) {
  const std::string shape = Extents(array.extents);
  const auto bytes = ByteCount(array.extents, StoredSize(array.type));
  if (!bytes) return Bad(reader.path(), Message("impossible extents ", shape));
  const auto wanted = static_cast<size_t>(*bytes);
  constexpr size_t kChunk = size_t{64} << 20;
  while (array.bytes.size() < wanted) {
    const size_t have = array.bytes.size();
    const size_t part = std::min(kChunk, wanted - have);
    array.bytes.resize(have + part);
    absl::StatusOr<size_t> got = reader.Read(array.bytes.data() + have, part);
    if (!got.ok()) return got.status();
    if (*got < part) {
      return Bad(reader.path(),
                 Message("truncated: ", shape, " elements of ", StoredName(array.type), " are ",
                         wanted, " bytes, and there are ", have + *got));
    }
  }
  return reader.ExpectEnd();
}

void SwapBytes(StoredArray& array) {
  const size_t size = StoredSize(array.type);
  if (size == 1) return;
  for (size_t at = 0; at + size <= array.bytes.size(); at += size) {
    std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 array.bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

// idx: two zero bytes, a type byte, the number of axes, the extents as big-endian 32-bit integers,
// then the elements, big-endian.
absl::StatusOr<StoredArray> ReadIdx(Reader& reader) {
  std::byte magic[4];
  if (absl::Status s = ReadHeader(reader, magic, 4, "idx header"); !s.ok()) return s;
  StoredArray array;
  switch (std::to_integer<int>(magic[2])) {
    case 0x08:
      array.type = Stored::kU8;
      break;
    case 0x09:
      array.type = Stored::kI8;
      break;
    case 0x0B:
      array.type = Stored::kI16;
      break;
    case 0x0C:
      array.type = Stored::kI32;
      break;
    case 0x0D:
      array.type = Stored::kF32;
      break;
    case 0x0E:
      array.type = Stored::kF64;
      break;
    default:
      return Bad(reader.path(), "not an idx file: unknown element type in the magic number");
  }
  const int axes = std::to_integer<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || axes == 0 ||
      axes > tensor::kMaxRank) {
    return Bad(reader.path(), "not an idx file: bad magic number");
  }
  for (int axis = 0; axis < axes; ++axis) {
    std::byte extent[4];
    if (absl::Status s = ReadHeader(reader, extent, 4, "idx header"); !s.ok()) return s;
    int64_t value = 0;
    for (std::byte byte : extent) value = value << 8 | std::to_integer<int64_t>(byte);
    array.extents.push_back(value);
  }
  if (absl::Status s = ReadElements(reader, array); !s.ok()) return s;
  SwapBytes(array);
  return array;
}

// The text after 'key': in the header of an npy file, or "".
std::string_view NpyValue(std::string_view header, std::string_view key) {
  const size_t at = header.find(Message("'", key, "':"));
  if (at == std::string_view::npos) return {};
  return Strip(header.substr(at + key.size() + 3));
}

absl::StatusOr<StoredArray> ReadNpy(Reader& reader) {
  const std::string& path = reader.path();
  std::byte start[8];
  if (absl::Status s = ReadHeader(reader, start, 8, "npy header"); !s.ok()) return s;
  const int major = std::to_integer<int>(start[6]);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0 || major < 1 || major > 3) {
    return Bad(path, "not an npy file: bad magic number");
  }
  std::byte length[4] = {};
  if (absl::Status s = ReadHeader(reader, length, major == 1 ? 2 : 4, "npy header"); !s.ok()) {
    return s;
  }
  uint32_t size = 0;
  std::memcpy(&size, length, 4);
  if (size > (1u << 20)) return Bad(path, "not an npy file: its header is too long");
  std::string header(size, '\0');
  if (absl::Status s =
          ReadHeader(reader, reinterpret_cast<std::byte*>(header.data()), size, "npy header");
      !s.ok()) {
    return s;
  }
  const std::string_view descr = NpyValue(header, "descr");
  const std::string_view order = NpyValue(header, "fortran_order");
  const std::string_view shape = NpyValue(header, "shape");
  if (descr.size() < 5 || descr[0] != '\'' || shape.empty() || shape[0] != '(') {
    return Bad(path, "the header of the npy file is damaged");
  }
  if (order.substr(0, 5) != "False") return Bad(path, "an npy file in Fortran order");
  StoredArray array;
  constexpr std::pair<std::string_view, Stored> kDescriptions[] = {
      {"b1", Stored::kBool}, {"u1", Stored::kU8},  {"i1", Stored::kI8},  {"u2", Stored::kU16},
      {"i2", Stored::kI16},  {"u4", Stored::kU32}, {"i4", Stored::kI32}, {"u8", Stored::kU64},
      {"i8", Stored::kI64},  {"f4", Stored::kF32}, {"f8", Stored::kF64}};
  const std::string_view code = descr.substr(2, 2);
  const auto* found = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                   [&](const auto& entry) { return entry.first == code; });
  if (found == std::end(kDescriptions) || descr[4] != '\'') {
    return Bad(path, Message("an npy file of unknown elements ", descr.substr(0, 6)));
  }
  array.type = found->second;
  const size_t close = shape.find(')');
  if (close == std::string_view::npos) return Bad(path, "the header of the npy file is damaged");
  for (std::string_view part : Split(shape.substr(1, close - 1), ",")) {
    if (part.empty()) continue;
    int64_t extent = 0;
    if (!ParseNumber(part, &extent) || extent < 0 ||
        array.extents.size() >= static_cast<size_t>(tensor::kMaxRank)) {
      return Bad(path, "the shape of the npy file is damaged");
    }
    array.extents.push_back(extent);
  }
  if (array.extents.empty()) return Bad(path, "an npy file of one scalar, not of samples");
  if (absl::Status s = ReadElements(reader, array); !s.ok()) return s;
  if (descr[1] == '>') SwapBytes(array);
  return array;
}

template <class T>
void AppendElement(std::vector<std::byte>& bytes, T value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

class CsvReader {
 public:
  CsvReader(Reader& reader, tensor::DType dtype, const tensor::Shape& sample)
      : reader_(reader), floats_(tensor::IsFloat(dtype)), per_line_(tensor::NumElements(sample)) {
    array_.type =
        floats_ ? (dtype == tensor::DType::kF32 ? Stored::kF32 : Stored::kF64) : Stored::kI64;
    array_.extents = sample;
    array_.extents.insert(array_.extents.begin(), 0);
  }

  absl::StatusOr<StoredArray> Read() {
    std::string line;
    std::vector<std::byte> chunk(size_t{1} << 18);
    for (;;) {
      absl::StatusOr<size_t> got = reader_.Read(chunk.data(), chunk.size());
      if (!got.ok()) return got.status();
      for (size_t i = 0; i < *got; ++i) {
        const char c = static_cast<char>(chunk[i]);
        if (c != '\n') {
          line += c;
          if (line.size() > kMaxLine) return Bad(reader_.path(), "a line of more than 64 MiB");
          continue;
        }
        if (absl::Status s = AddLine(line); !s.ok()) return s;
        line.clear();
      }
      if (*got < chunk.size()) break;
    }
    if (absl::Status s = AddLine(line); !s.ok()) return s;
    return std::move(array_);
  }

 private:
  static constexpr size_t kMaxLine = size_t{64} << 20;

  absl::Status AddLine(std::string_view line) {
    ++number_;
    line = Strip(line);
    if (line.empty()) return absl::OkStatus();
    const size_t before = array_.bytes.size();
    int64_t count = 0;
    for (std::string_view cell : Split(line, ",;\t")) {
      if (!AddCell(cell)) {
        // A first line without a number in front is a line of titles.
        if (number_ == 1 && count == 0) return absl::OkStatus();
        return Bad(reader_.path(), Message("line ", number_, ": '", cell.substr(0, 40), "' is not ",
                                           floats_ ? "a number" : "a whole number"));
      }
      ++count;
    }
    if (count != per_line_) {
      array_.bytes.resize(before);
      return Bad(reader_.path(),
                 Message("line ", number_, " has ", count, " values, not ", per_line_));
    }
    ++array_.extents[0];
    return absl::OkStatus();
  }

  bool AddCell(std::string_view cell) {
    if (array_.type == Stored::kI64) {
      int64_t value = 0;
      if (!ParseNumber(cell, &value)) return false;
      AppendElement(array_.bytes, value);
      return true;
    }
    double value = 0;
    if (!ParseNumber(cell, &value)) return false;
    if (array_.type == Stored::kF32) {
      AppendElement(array_.bytes, static_cast<float>(value));
    } else {
      AppendElement(array_.bytes, value);
    }
    return true;
  }

  Reader& reader_;
  const bool floats_;
  const int64_t per_line_;
  StoredArray array_;
  int64_t number_ = 0;
};

absl::StatusOr<StoredArray> ReadRaw(Reader& reader, tensor::DType dtype,
                                    const tensor::Shape& sample) {
  StoredArray array;
  array.type = StoredFor(dtype);
  array.extents = sample;
  const int64_t each = tensor::NumElements(sample) * static_cast<int64_t>(StoredSize(array.type));
  for (;;) {
    const size_t have = array.bytes.size();
    array.bytes.resize(have + (size_t{4} << 20));
    absl::StatusOr<size_t> got = reader.Read(array.bytes.data() + have, array.bytes.size() - have);
    if (!got.ok()) return got.status();
    array.bytes.resize(have + *got);
    if (*got < size_t{4} << 20) break;
  }
  const auto bytes = static_cast<int64_t>(array.bytes.size());
  if (bytes % each != 0) {
    return Bad(reader.path(), Message("truncated: ", bytes,
                                      " bytes are not a whole number of "
                                      "samples of ",
                                      each, " bytes"));
  }
  array.extents.insert(array.extents.begin(), bytes / each);
  return array;
}

}  // namespace

std::string_view StoredName(Stored type) { return kTypes[static_cast<size_t>(type)].name; }
size_t StoredSize(Stored type) { return kTypes[static_cast<size_t>(type)].size; }
bool IsFloat(Stored type) { return type == Stored::kF32 || type == Stored::kF64; }

Stored StoredFor(tensor::DType dtype) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.name == tensor::DTypeName(dtype)) return entry.type;
  }
  return Stored::kU8;
}

bool ParseFileFormat(std::string_view name, FileFormat* format) {
  constexpr std::pair<std::string_view, FileFormat> kFormats[] = {{"idx", FileFormat::kIdx},
                                                                  {"npy", FileFormat::kNpy},
                                                                  {"csv", FileFormat::kCsv},
                                                                  {"raw", FileFormat::kRaw}};
  for (const auto& [known, value] : kFormats) {
    if (known != name) continue;
    *format = value;
    return true;
  }
  return false;
}

absl::StatusOr<StoredArray> ReadArray(const std::string& path, FileFormat format,
                                      tensor::DType dtype, const tensor::Shape& sample) {
  absl::StatusOr<std::unique_ptr<Reader>> reader = Reader::Open(path);
  if (!reader.ok()) return reader.status();
  try {
    switch (format) {
      case FileFormat::kIdx:
        return ReadIdx(**reader);
      case FileFormat::kNpy:
        return ReadNpy(**reader);
      case FileFormat::kCsv:
        return CsvReader(**reader, dtype, sample).Read();
      case FileFormat::kRaw:
        return ReadRaw(**reader, dtype, sample);
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(path + ": too large for the memory of this machine");
  }
  return absl::InternalError("unknown file format");
}

}  // namespace l3c::runtime
