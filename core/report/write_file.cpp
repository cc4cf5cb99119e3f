#include "sherlorch/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/report/text_util.h"

namespace sherlorch {
namespace {

namespace fs = std::filesystem;

std::string advice(int error, const std::string& folder) {
  switch (error) {
    case ENOENT:
      return "there is no folder " + folder + "; create it or choose another path";
    case ENOTDIR:
      return folder + " is not a folder; choose another path";
    case EACCES:
    case EPERM:
      return "you may not write in " + folder + "; choose another folder or change its permissions";
    case EROFS:
      return folder + " is read-only; choose a path on another disk";
    case ENOSPC:
      return "the disk is full; free some space or choose a path on another disk";
    case EDQUOT:
      return "your disk quota is used up; free some space or choose a path on another disk";
    case EISDIR:
      return "it is a folder; add a file name";
    case ENAMETOOLONG:
      return "the name is too long; choose a shorter one";
    case EEXIST:
      return "it exists already; choose another path or ask to overwrite it (overwrite=True)";
    default:
      return std::string(std::strerror(error)) + "; choose another path";
  }
}

[[noreturn]] void fail(const std::string& path, int error) {
  const std::string folder = fs::path(path).parent_path().string();
  throw ReportError("Cannot write " + (path.empty() ? "a report without a file name" : printable(path)) + ": " +
                    advice(error, folder.empty() ? "the current folder" : printable(folder)) + ".");
}

// An open file that closes itself and, until kept, removes itself.
class NewFile {
 public:
  NewFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  int fd() const { return fd_; }
  const std::string& name() const { return name_; }
  void keep() { name_.clear(); }
  // False where the file system reports a late error (a network disk that is full).
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  std::string name_;
  int fd_;
};

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Pipes and devices cannot be replaced.
void write_through(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(path, errno);
  const NewFile file("", fd);
  if (!write_all(fd, content)) fail(path, errno);
}

NewFile open_beside(const std::string& path, const std::string& shown) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    // Not derived from the name, which may be as long as the file system allows.
    const fs::path folder = fs::path(path).parent_path();
    std::string name = (folder / (".sherlorch-" + std::to_string(random()) + ".tmp")).string();
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return NewFile(std::move(name), fd);
    if (errno != EEXIST) fail(shown, errno);
  }
  fail(shown, EEXIST);
}

// Gives the file its name, unless that is taken. Returns 0 or an errno.
int publish_new(NewFile& file, const std::string& path) {
#if defined(__linux__) && defined(RENAME_NOREPLACE)
  if (::renameat2(AT_FDCWD, file.name().c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    file.keep();
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;  // else the file system does not know it
#endif
  if (::link(file.name().c_str(), path.c_str()) == 0) return 0;  // and the temporary name goes
  if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS) return errno;
  // Neither: a file system like FAT. A file that appears between the two calls is lost here, and only here.
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) return EEXIST;
  if (::rename(file.name().c_str(), path.c_str()) != 0) return errno;
  file.keep();
  return 0;
}

// So that the name, too, is on the disk. Best effort: some file systems refuse.
void sync_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// A flush to the disk. Some file systems have none to offer (EINVAL, ENOTSUP): that is no reason to fail.
bool flush(int fd) {
  while (::fsync(fd) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
  }
  return true;
}

}  // namespace

void write_file(const std::string& path, std::string_view content, bool overwrite) {
  if (path.empty()) fail(path, EINVAL);
  if (path.find('\0') != std::string::npos) fail(path.substr(0, path.find('\0')), EINVAL);
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(path, errno);
  if (path.back() == '/' || (exists && S_ISDIR(status.st_mode))) fail(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_through(path, content);
  if (exists && !overwrite) fail(path, EEXIST);
  if (exists && ::access(path.c_str(), W_OK) != 0) {  // the folder would allow it, but its owner said no
    throw ReportError("Cannot write " + printable(path) +
                      ": it is write-protected; choose another path or make it writable.");
  }

  std::error_code error;
  std::string real = path;
  if (exists) {
    real = fs::canonical(path, error).string();  // through a symbolic link, which stays
    if (error) fail(path, error.value());
  }
  NewFile file = open_beside(real, path);
  if (exists) ::fchmod(file.fd(), status.st_mode & 07777);  // best effort: not every file system has modes
  if (!write_all(file.fd(), content) || !flush(file.fd()) || !file.close()) fail(path, errno);
  if (overwrite) {
    if (::rename(file.name().c_str(), real.c_str()) != 0) fail(path, errno);
    file.keep();
  } else if (const int problem = publish_new(file, real); problem != 0) {
    fail(path, problem);
  }
  sync_folder(real);
}

}  // namespace sherlorch
