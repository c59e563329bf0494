// Files read through io_uring and without it, data left on the disk, and pictures.
#include <png.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// After <cstdio>, which it needs and does not include.
#include <jpeglib.h>

#include "gtest/gtest.h"
#include "runtime/arena.h"
#include "runtime/batches.h"
#include "runtime/data_set.h"
#include "runtime/file_reader.h"
#include "runtime/regular_file.h"
#include "tests/runtime/temp_folder.h"

namespace l3c::runtime {
namespace {

using tensor::DType;
using testing::TempFolder;

// The portable reader, and io_uring where this machine grants it.
std::vector<std::unique_ptr<FileReader>> Readers() {
  std::vector<std::unique_ptr<FileReader>> readers;
  readers.push_back(*FileReader::Create(FileReader::Kind::kPortable));
  auto ring = FileReader::Create(FileReader::Kind::kUring);
  if (ring.ok()) {
    readers.push_back(*std::move(ring));
  } else {
    GTEST_LOG_(WARNING) << "not tested: " << ring.status();
  }
  return readers;
}

TEST(FileReader, ReadsEveryRequest) {
  TempFolder folder;
  std::string bytes(100'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  folder.Write("file", bytes);
  absl::StatusOr<RegularFile> file = RegularFile::Open(folder / "file");
  ASSERT_TRUE(file.ok());
  for (const auto& reader : Readers()) {
    // More than are in flight at a time, of many lengths, the last beyond the end.
    std::vector<ReadRequest> requests(300);
    std::vector<std::vector<std::byte>> out(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      out[i].resize(i);
      requests[i].fd = file->fd();
      requests[i].offset = static_cast<int64_t>(i * 331);
      requests[i].to = out[i];
    }
    requests.back().offset = static_cast<int64_t>(bytes.size()) - 10;
    ReadRequest closed;
    closed.fd = -1;
    closed.to = out.front();
    std::byte one[1];
    closed.to = one;
    requests.push_back(closed);
    reader->Read(requests);
    for (size_t i = 0; i + 2 < requests.size(); ++i) {
      ASSERT_EQ(requests[i].error, 0) << reader->name() << " " << i;
      ASSERT_EQ(requests[i].done, i) << reader->name();
      if (i == 0) continue;  // nothing was asked for
      ASSERT_EQ(0, std::memcmp(out[i].data(), bytes.data() + requests[i].offset, i));
    }
    EXPECT_EQ(requests[299].done, 10u) << reader->name();
    EXPECT_EQ(requests[299].error, 0) << reader->name();
    EXPECT_EQ(requests[300].error, EBADF) << reader->name();
  }
}

TEST(FileReader, IsNamed) {
  FileReader::Kind kind;
  EXPECT_TRUE(ParseFileReaderKind("portable", &kind));
  EXPECT_EQ((*FileReader::Create(kind))->name(), "portable");
  EXPECT_FALSE(ParseFileReaderKind("mmap", &kind));
}

TEST(Arena, GivesPiecesThatDoNotMeet) {
  Arena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::span<std::byte>> pieces;
    for (size_t size : {1, 100, 2'000'000, 64, 700'000, 0}) {
      pieces.push_back(arena.Take(size));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces.back().data()) % 64, 0u);
      std::memset(pieces.back().data(), static_cast<int>(pieces.size()), size);
    }
    for (size_t p = 0; p < pieces.size(); ++p) {
      for (std::byte b : pieces[p]) ASSERT_EQ(std::to_integer<size_t>(b), p + 1);
    }
    const size_t reserved = arena.reserved();
    arena.Reset();
    // It has grown to what is needed.
    if (round > 0) {
      EXPECT_EQ(arena.reserved(), reserved);
    }
  }
}

std::string Idx(int type, std::vector<int> extents, const std::string& elements) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (int e : extents) bytes += {0, 0, static_cast<char>(e >> 8), static_cast<char>(e)};
  return bytes + elements;
}

std::string Npy(const std::string& descr, const std::string& shape, const std::string& elements) {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
         elements;
}

// Whatever the format and the reader, the batches of a field that stays on the disk are those of
// one in memory.
TEST(OnDisk, BatchesAreTheSame) {
  std::string elements(50 * 6 * 4, '\0');
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<char>(i % 61);
  const std::pair<std::string, std::string> files[] = {
      {"train.x.idx", Idx(0x0D, {50, 2, 3}, elements)},
      {"train.x.npy", Npy("<f4", "(50, 2, 3)", elements)},
      {"train.x.npy", Npy(">i4", "(50, 2, 3)", elements)},
      {"train.x.npy", Npy("|u1", "(200, 2, 3)", elements)},
      {"train.x.raw", elements}};
  for (const auto& [name, bytes] : files) {
    TempFolder folder;
    folder.Write(name, bytes);
    l0::DataSource source;
    source.fields = {{"x", DType::kF32, {2, 3}, 0}};
    l0::Sampler sampler;
    sampler.batch = 16;
    sampler.seed = 3;
    const SplitData resident = *ReadSplit(source, folder.path(), "train");
    EXPECT_EQ(resident.fields[0].rows, nullptr);
    Batches expected(sampler, source, resident);
    for (const auto& reader : Readers()) {
      const SplitData streamed = *ReadSplit(source, folder.path(), "train", {reader.get(), 0});
      ASSERT_NE(streamed.fields[0].rows, nullptr) << name;
      EXPECT_EQ(streamed.samples, resident.samples);
      Batches batches(sampler, source, streamed);
      for (int64_t number = 0; number < 3 * batches.BatchesPerEpoch(); ++number) {
        std::vector<std::byte> a(16 * 24), b(16 * 24);
        ASSERT_TRUE(expected.Fill(number, 0, a.data()).ok());
        ASSERT_TRUE(batches.Fill(number, 0, b.data()).ok());
        ASSERT_EQ(a, b) << name << " " << reader->name() << " batch " << number;
      }
    }
  }
}

// What a check has to look at, and what cannot be found without reading, is in memory all the same.
TEST(OnDisk, LabelsAndTextAreInMemory) {
  TempFolder folder;
  folder.Write("train.x.csv", "1\n2\n3\n");
  folder.Write("train.y.idx", Idx(8, {3}, std::string("\1\0\2", 3)));
  l0::DataSource source;
  source.fields = {{"x", DType::kF32, {1}, 0}, {"y", DType::kU8, {1}, 3}};
  const SplitData data = *ReadSplit(source, folder.path(), "train", {nullptr, 0});
  EXPECT_EQ(data.fields[0].rows, nullptr);
  EXPECT_EQ(data.fields[1].rows, nullptr);
  source.fields[1].classes = 2;
  EXPECT_FALSE(ReadSplit(source, folder.path(), "train", {nullptr, 0}).ok());
}

TEST(OnDisk, AFileThatIsCutShortIsAnError) {
  TempFolder folder;
  folder.Write("train.x.raw", std::string(80, 'a'));
  l0::DataSource source;
  source.fields = {{"x", DType::kF32, {2}, 0}};
  l0::Sampler sampler;
  sampler.kind = l0::SampleKind::kSequential;
  sampler.batch = 5;
  for (const auto& reader : Readers()) {
    std::filesystem::resize_file(folder / "train.x.raw", 80);
    const SplitData data = *ReadSplit(source, folder.path(), "train", {reader.get(), 0});
    Batches batches(sampler, source, data);
    std::filesystem::resize_file(folder / "train.x.raw", 60);
    std::vector<std::byte> out(40);
    EXPECT_TRUE(batches.Fill(0, 0, out.data()).ok());
    const absl::Status status = batches.Fill(1, 0, out.data());
    EXPECT_NE(status.message().find("train.x.raw: has become shorter since the run began: row 7"),
              absl::string_view::npos)
        << status;
  }
}

// Found when a batch has it, where the elements are not looked at before.
TEST(OnDisk, ANumberThatIsNoneIsAnError) {
  TempFolder folder;
  const float values[] = {1, 2, 3, 4, 5, NAN, 7, 8};
  folder.Write("train.x.raw", std::string(reinterpret_cast<const char*>(values), sizeof values));
  l0::DataSource source;
  source.name = "d";
  source.fields = {{"x", DType::kF32, {2}, 0}};
  l0::Sampler sampler;
  sampler.kind = l0::SampleKind::kSequential;
  sampler.split = "train";
  sampler.batch = 2;
  const auto refused = ReadSplit(source, folder.path(), "train");
  EXPECT_NE(refused.status().message().find("train.x.raw: sample 2: field 'x': nan is no number"),
            absl::string_view::npos)
      << refused.status();
  const SplitData data = *ReadSplit(source, folder.path(), "train", {nullptr, 0});
  ASSERT_NE(data.fields[0].rows, nullptr);
  Batches batches(sampler, source, data);
  std::vector<std::byte> out(16);
  EXPECT_TRUE(batches.Fill(0, 0, out.data()).ok());
  const absl::Status status = batches.Fill(1, 0, out.data());
  EXPECT_NE(status.message().find("data 'd', split 'train': sample 2: field 'x'"),
            absl::string_view::npos)
      << status;
}

TEST(Csv, AColumnOfATable) {
  TempFolder folder;
  folder.Write("table.csv", "name,size,kind\na,1.5,2\nb,-3,0\n");
  folder.Write("dataset.json",
               R"({"train": {"x": {"file": "table.csv", "format": "csv", "column": "size"},
                             "y": {"file": "table.csv", "format": "csv", "column": "kind"}}})");
  l0::DataSource source;
  source.fields = {{"x", DType::kF32, {1}, 0}, {"y", DType::kU8, {1}, 3}};
  auto data = ReadSplit(source, folder.path(), "train");
  ASSERT_TRUE(data.ok()) << data.status();
  float sizes[2];
  ASSERT_EQ(data->fields[0].bytes.size(), sizeof sizes);
  std::memcpy(sizes, data->fields[0].bytes.data(), sizeof sizes);
  EXPECT_EQ(sizes[0], 1.5f);
  EXPECT_EQ(sizes[1], -3.0f);
  for (const auto& [table, words] : {std::pair("name,kind\na,1\n", "no title 'size'"),
                                     std::pair("name,kind,size\na,1\n", "line 2 has 2 values")}) {
    folder.Write("table.csv", table);
    const absl::Status status = ReadSplit(source, folder.path(), "train").status();
    EXPECT_NE(status.message().find(words), absl::string_view::npos) << status;
  }
}

std::string PngOf(int height, int width, int format, const std::string& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<uint32_t>(width);
  image.height = static_cast<uint32_t>(height);
  image.format = static_cast<uint32_t>(format);
  std::string bytes(10000, '\0');
  size_t size = bytes.size();
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr));
  bytes.resize(size);
  return bytes;
}

std::string JpegOf(int height, int width, const std::string& pixels) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < height; ++y) {
    auto* row = const_cast<JSAMPROW>(
        reinterpret_cast<const JSAMPLE*>(pixels.data() + static_cast<size_t>(3 * y * width)));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

// Six pictures in a subfolder for each of two classes.
class PicturesTest : public ::testing::Test {
 protected:
  PicturesTest() {
    folder_.Write("dataset.json",
                  R"({"train": {"picture": {"file": "train", "format": "images"},
                                "kind": {"file": "train", "format": "classes"}}})");
    for (int i = 0; i < 6; ++i) {
      std::string pixels(3 * 4 * 3, '\0');
      for (size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<char>(p * 5 + 40 * i);
      pixels_.push_back(pixels);
      const std::string path = folder_ / (i % 2 == 0 ? "train/cat" : "train/dog");
      std::filesystem::create_directories(path);
      folder_.Write((i % 2 == 0 ? "train/cat/" : "train/dog/") + std::to_string(i) + ".png",
                    PngOf(3, 4, PNG_FORMAT_RGB, pixels));
    }
    folder_.Write("train/cat/notes.txt", "not a picture");
    source_.fields = {{"picture", DType::kF32, {3, 4, 3}, 0}, {"kind", DType::kU8, {1}, 2}};
  }

  absl::Status Fails(int64_t resident = 1 << 20) {
    return ReadSplit(source_, folder_.path(), "train", {nullptr, resident}).status();
  }
  void ExpectRefused(const std::string& words) {
    const absl::Status status = Fails();
    EXPECT_NE(status.message().find(words), absl::string_view::npos) << status;
  }

  TempFolder folder_;
  std::vector<std::string> pixels_;
  l0::DataSource source_;
};

TEST_F(PicturesTest, AFolderIsItsPicturesAndTheirClasses) {
  for (int64_t resident : {0, 1 << 20}) {
    for (const auto& reader : Readers()) {
      auto data = ReadSplit(source_, folder_.path(), "train", {reader.get(), resident});
      ASSERT_TRUE(data.ok()) << data.status();
      EXPECT_EQ(data->samples, 6);
      EXPECT_EQ(data->fields[0].rows == nullptr, resident > 0);
      l0::Sampler sampler;
      sampler.kind = l0::SampleKind::kSequential;
      sampler.batch = 6;
      Batches batches(sampler, source_, *data);
      std::vector<float> out(6 * 36);
      ASSERT_TRUE(batches.Fill(0, 0, reinterpret_cast<std::byte*>(out.data())).ok());
      std::vector<uint8_t> kinds(6);
      ASSERT_TRUE(batches.Fill(0, 1, reinterpret_cast<std::byte*>(kinds.data())).ok());
      EXPECT_EQ(kinds, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
      const int order[] = {0, 2, 4, 1, 3, 5};
      for (size_t i = 0; i < 6; ++i) {
        for (size_t p = 0; p < 36; ++p) {
          ASSERT_EQ(out[36 * i + p],
                    static_cast<unsigned char>(pixels_[static_cast<size_t>(order[i])][p]));
        }
      }
    }
  }
}

TEST_F(PicturesTest, AColumnOfPaths) {
  folder_.Write("list.csv", "label,where\n1,train/dog/3.png\n0,train/cat/0.png\n");
  folder_.Write(
      "dataset.json",
      R"({"train": {"picture": {"file": "list.csv", "format": "images", "column": "where"},
                              "kind": {"file": "list.csv", "format": "csv", "column": "label"}}})");
  auto data = ReadSplit(source_, folder_.path(), "train");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->samples, 2);
  EXPECT_EQ(0, std::memcmp(data->fields[0].bytes.data(), pixels_[3].data(), 36));
  folder_.Write("list.csv", "label,where\n1,train/dog/9.png\n0,train/cat/0.png\n");
  ExpectRefused("dog/9.png: no such file");
}

TEST_F(PicturesTest, GreyPicturesAndJpegByTheirBytes) {
  std::filesystem::remove_all(folder_ / "train");
  std::filesystem::remove(folder_ / "dataset.json");
  std::filesystem::create_directories(folder_ / "train.picture");
  // Named as what it is not: the first bytes tell.
  folder_.Write("train.picture/a.jpg", PngOf(2, 2, PNG_FORMAT_GRAY, "\1\2\3\4"));
  source_.fields = {{"picture", DType::kU8, {2, 2}, 0}};
  auto grey = ReadSplit(source_, folder_.path(), "train");
  ASSERT_TRUE(grey.ok()) << grey.status();
  EXPECT_EQ(0, std::memcmp(grey->fields[0].bytes.data(), "\1\2\3\4", 4));
  // A picture of one colour survives the compression.
  std::string colour;
  for (int i = 0; i < 64; ++i) colour += "\x80\x80\x80";
  folder_.Write("train.picture/a.jpg", JpegOf(8, 8, colour));
  source_.fields = {{"picture", DType::kU8, {8, 8, 3}, 0}};
  auto jpeg = ReadSplit(source_, folder_.path(), "train");
  ASSERT_TRUE(jpeg.ok()) << jpeg.status();
  EXPECT_EQ(0, std::memcmp(jpeg->fields[0].bytes.data(), colour.data(), colour.size()));
}

TEST_F(PicturesTest, RefusesWhatIsNoPictureOfTheDeclaredExtents) {
  source_.fields[0].shape = {3, 4};
  ExpectRefused("has 3 x 4 pixels of 3 channels; 3 x 4 pixels of 1 channel are declared");
  source_.fields[0].shape = {4, 3, 3};
  ExpectRefused("cat/0.png: has 3 x 4 pixels of 3 channels; 4 x 3 pixels");
  source_.fields[0].shape = {36};
  ExpectRefused("pictures are [height, width]");
  source_.fields[0].shape = {3, 4, 3};
  folder_.Write("train/dog/5.png", "GIF89a");
  ExpectRefused("dog/5.png: not a picture of a known kind (png, jpeg)");
  folder_.Write("train/6.png", PngOf(3, 4, PNG_FORMAT_RGB, pixels_[0]));
  folder_.Write("train/dog/5.png", PngOf(3, 4, PNG_FORMAT_RGB, pixels_[5]));
  ExpectRefused("6.png: lies in no subfolder");
  std::filesystem::remove_all(folder_ / "train");
  std::filesystem::create_directories(folder_ / "train");
  ExpectRefused("there is no picture");
}

// Every prefix and every damaged byte of a file ends in an error or in pixels, never worse.
TEST_F(PicturesTest, DamagedFilesAreErrors) {
  std::string colour;
  for (int i = 0; i < 36; ++i) colour += static_cast<char>(i * 7);
  const std::string png = PngOf(3, 4, PNG_FORMAT_RGB, colour);
  const std::string jpeg = JpegOf(3, 4, colour);
  const ImageExtents extents = {3, 4, 3};
  std::vector<std::byte> out(36);
  for (const std::string& file : {png, jpeg}) {
    const auto bytes = std::as_bytes(std::span(file));
    EXPECT_TRUE(DecodeImage("f", bytes, extents, out).ok());
    for (size_t size = 0; size + 2 < file.size(); ++size) {
      EXPECT_FALSE(DecodeImage("f", bytes.first(size), extents, out).ok()) << size;
    }
    for (size_t at = 0; at < file.size(); ++at) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      (void)DecodeImage("f", std::as_bytes(std::span(damaged)), extents, out).ok();
    }
  }
}

}  // namespace
}  // namespace l3c::runtime
