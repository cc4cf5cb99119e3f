#include "core/report/text_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sherlorch {
namespace {

class TextSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("sherlorch_source_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& content) {
    const std::string path = (folder_ / "user.py").string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string text(const std::vector<SourceLine>& lines) {
    std::string out;
    for (const SourceLine& line : lines) out += std::to_string(line.number) + ":" + line.text + "|";
    return out;
  }

  std::filesystem::path folder_;
};

TEST_F(TextSourceTest, LineComesWithItsNeighbours) {
  const std::string path = file("a\nb\r\nc\nd");
  EXPECT_EQ(text(read_source({path, 2, ""}, 1)), "1:a|2:b|3:c|");
  EXPECT_EQ(text(read_source({path, 1, ""}, 1)), "1:a|2:b|");
  EXPECT_EQ(text(read_source({path, 4, ""}, 1)), "3:c|4:d|");
}

TEST_F(TextSourceTest, NothingToShowIsNoError) {
  const std::string path = file("a\n");
  EXPECT_TRUE(read_source({path, 2, ""}, 1).empty()) << "the file is shorter than that: not the one that ran";
  EXPECT_TRUE(read_source({path, 0, ""}, 1).empty());
  EXPECT_TRUE(read_source({path, 2147483647, ""}, 1).empty());
  EXPECT_TRUE(read_source({"<ipython-input-3-abc>", 1, ""}, 1).empty());
  EXPECT_TRUE(read_source({"/no/such/file.py", 1, ""}, 1).empty());
  EXPECT_TRUE(read_source({folder_.string(), 1, ""}, 1).empty()) << "a folder";
  EXPECT_TRUE(read_source({"/dev/zero", 1, ""}, 1).empty()) << "endless";
  EXPECT_TRUE(read_source({}, 1).empty());
}

TEST_F(TextSourceTest, PipeDoesNotBlock) {
  const std::string path = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(read_source({path, 1, ""}, 1).empty());
}

TEST_F(TextSourceTest, HugeLineIsCut) {
  const auto lines = read_source({file(std::string(1 << 20, 'x') + "\nnext\n"), 1, ""}, 1);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_LE(lines[0].text.size(), 4096u);
  EXPECT_EQ(lines[1].text, "next");
}

TEST_F(TextSourceTest, ReaderOfTheCallerComesFirst) {
  const SourceReader reader = [](const std::string& file, int line, std::string* text) {
    *text = file + "#" + std::to_string(line);
    return line < 3;
  };
  EXPECT_EQ(text(read_source({"<cell>", 2, ""}, 1, reader)), "1:<cell>#1|2:<cell>#2|");
}

}  // namespace
}  // namespace sherlorch
