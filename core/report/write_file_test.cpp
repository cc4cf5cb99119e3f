#include "sherlorch/report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace sherlorch {
namespace {

namespace fs = std::filesystem;

class WriteFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sherlorch_write_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string error(const std::string& path, bool overwrite = true) {
    try {
      write_file(path, "x", overwrite);
    } catch (const ReportError& e) {
      return e.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(WriteFileTest, WritesBytesAsTheyAreAndLeavesNothingBeside) {
  const std::string content("a\0\r\n\xFF", 5);
  write_file(path("r.json"), content, false);
  EXPECT_EQ(read(path("r.json")), content);
  write_file(path("r.json"), "", true);
  EXPECT_EQ(read(path("r.json")), "");
  const std::string large(8 << 20, 'x');
  write_file(path("r.json"), large, true);
  EXPECT_EQ(read(path("r.json")), large);
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFileTest, ExistingFileIsKeptUnlessToldOtherwise) {
  write_file(path("r.json"), "old", false);
  EXPECT_EQ(error(path("r.json"), false),
            "Cannot write " + path("r.json") +
                ": it exists already; choose another path or ask to overwrite it (overwrite=True).");
  EXPECT_EQ(read(path("r.json")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFileTest, OfManyThatCreateTheSameFileOneWins) {
  std::vector<std::thread> threads;
  std::atomic<int> won = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      try {
        write_file(path("r.json"), "content", false);
        ++won;
      } catch (const ReportError&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(read(path("r.json")), "content");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFileTest, PermissionsOfAnExistingFileStayAndNewOnesFollowTheUmask) {
  const mode_t old = ::umask(027);
  write_file(path("new"), "x", false);
  ::umask(old);
  struct stat status{};
  ASSERT_EQ(::stat(path("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  ASSERT_EQ(::chmod(path("new").c_str(), 0604), 0);
  write_file(path("new"), "y", true);
  ASSERT_EQ(::stat(path("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0604u);
}

TEST_F(WriteFileTest, SymbolicLinkStays) {
  write_file(path("real"), "old", false);
  fs::create_symlink("real", path("link"));
  write_file(path("link"), "new", true);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("real")), "new");
}

TEST_F(WriteFileTest, ErrorsSayWhatToDo) {
  EXPECT_EQ(error(path("no/r.json")), "Cannot write " + path("no/r.json") + ": there is no folder " + path("no") +
                                          "; create it or choose another path.");
  EXPECT_EQ(error(folder_.string()), "Cannot write " + folder_.string() + ": it is a folder; add a file name.");
  EXPECT_EQ(error(path("")), "Cannot write " + path("") + ": it is a folder; add a file name.");
  write_file(path("file"), "x", false);
  EXPECT_EQ(error(path("file/r")),
            "Cannot write " + path("file/r") + ": " + path("file") + " is not a folder; choose another path.");
  EXPECT_NE(error(path(std::string(300, 'n'))).find("the name is too long; choose a shorter one."), std::string::npos);
  EXPECT_NE(error("").find("without a file name"), std::string::npos);
  EXPECT_NE(error(std::string("a\0b", 3)), "");
}

TEST_F(WriteFileTest, FullDiskIsSaidAndLeavesNothing) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(error("/dev/full"),
            "Cannot write /dev/full: the disk is full; free some space or choose a path on another disk.");
}

TEST_F(WriteFileTest, ForbiddenFolderAndProtectedFile) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  write_file(path("r"), "old", false);
  ASSERT_EQ(::chmod(path("r").c_str(), 0400), 0);
  EXPECT_NE(error(path("r")).find("write-protected"), std::string::npos);
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  EXPECT_NE(error(path("s")).find("you may not write in "), std::string::npos);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
}

TEST_F(WriteFileTest, RelativePathGoesToTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file("plain.txt", "x", false);
  fs::current_path(before);
  EXPECT_EQ(read(path("plain.txt")), "x");
}

TEST_F(WriteFileTest, DeviceIsWrittenThrough) {
  write_file("/dev/null", "x", true);
  write_file("/dev/null", "x", false);
}

}  // namespace
}  // namespace sherlorch
