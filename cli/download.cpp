// libcurl is loaded when a download starts, not when the command starts. It loads about thirty
// other libraries, which would add a third to the start-up time of every subcommand, and the other
// subcommands work without libcurl.
#include "download.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tenon/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace tenon::cli {
namespace {

struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_setopt) set;
  decltype(&::curl_easy_getinfo) info;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_strerror) text;
};

const Curl& curl() {
  static const Curl loaded = [] {
    void* library = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw NotSupported(
          "fetching needs libcurl, which is not installed: 'apt-get install libcurl4', or put the "
          "files there by hand");
    Curl c{};
    const auto find = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr)
        throw NotSupported(
            fmt::format("this system's libcurl has no {}; install libcurl 7.32 or newer", name));
    };
    find(c.global_init, "curl_global_init");
    find(c.init, "curl_easy_init");
    find(c.set, "curl_easy_setopt");
    find(c.info, "curl_easy_getinfo");
    find(c.perform, "curl_easy_perform");
    find(c.cleanup, "curl_easy_cleanup");
    find(c.text, "curl_easy_strerror");
    c.global_init(CURL_GLOBAL_DEFAULT);
    return c;
  }();
  return loaded;
}

struct Transfer {
  int file = -1;
  int error = 0;  ///< errno of a failed write
  std::int64_t start = 0;
  const std::function<bool(std::int64_t, std::int64_t)>* progress = nullptr;
};

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  std::size_t done = 0;
  while (done < size * count) {
    const ssize_t written = write(transfer.file, data + done, size * count - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      transfer.error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(written);
  }
  return done;
}

int on_progress(void* context, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(context);
  const std::int64_t all = total > 0 ? transfer.start + total : 0;
  return (*transfer.progress)(transfer.start + now, all) ? 0 : 1;
}

// Redirects may lead to https:// only: a request over TLS must not be answered over plain HTTP, and
// a server must not choose a local file.
void follow_secure_redirects(const Curl& c, CURL* h) {
  constexpr long kMostRedirects = 10;
  constexpr long kHttps = 1L << 1;  // CURLPROTO_HTTPS, for libcurl before 7.85
  constexpr auto kOlderOption = static_cast<CURLoption>(182);  // CURLOPT_REDIR_PROTOCOLS
  if (c.set(h, CURLOPT_REDIR_PROTOCOLS_STR, "https") != CURLE_OK &&
      c.set(h, kOlderOption, kHttps) != CURLE_OK)
    return;  // follow no redirects
  c.set(h, CURLOPT_FOLLOWLOCATION, 1L);
  c.set(h, CURLOPT_MAXREDIRS, kMostRedirects);
}

// Protocols allowed in a user's URL.
void take_known_protocols(const Curl& c, CURL* h) {
  constexpr long kHttpHttpsFile = 1L | 1L << 1 | 1L << 10;     // for libcurl before 7.85
  constexpr auto kOlderOption = static_cast<CURLoption>(181);  // CURLOPT_PROTOCOLS
  if (c.set(h, CURLOPT_PROTOCOLS_STR, "http,https,file") != CURLE_OK)
    c.set(h, kOlderOption, kHttpHttpsFile);
}

}  // namespace

PartFile::PartFile(std::string path) : path_(std::move(path)) {
  for (;;) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file_ < 0)
      throw IoError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)),
                    {.file = path_});
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      close(file_);
      throw IoError(fmt::format("{}: another tenon is fetching it; wait for it to end", path_),
                    {.file = path_});
    }
    // The process that had the lock may have given the file its final name since it was opened.
    struct stat opened {
    }, named{};
    if (fstat(file_, &opened) == 0 && stat(path_.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
      return;
    close(file_);
  }
}

PartFile::~PartFile() {
  if (!path_.empty() && size() == 0) unlink(path_.c_str());
  close(file_);
}

std::int64_t PartFile::size() const {
  struct stat status {};
  return fstat(file_, &status) == 0 ? static_cast<std::int64_t>(status.st_size) : 0;
}

void PartFile::clear() {
  if (ftruncate(file_, 0) != 0)
    throw IoError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)),
                  {.file = path_});
}

void PartFile::rename_to(const std::string& target) {
  if (std::rename(path_.c_str(), target.c_str()) != 0)
    throw IoError(
        fmt::format("{}: cannot be renamed to {}: {}", path_, target, std::strerror(errno)),
        {.file = path_});
  path_.clear();
}

void download(const std::string& url, PartFile& part,
              const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  const Curl& c = curl();
  Transfer transfer;
  transfer.file = part.file();
  transfer.progress = &progress;
  transfer.start = part.size();
  const std::unique_ptr<CURL, decltype(c.cleanup)> handle(c.init(), c.cleanup);
  CURL* h = handle.get();
  c.set(h, CURLOPT_URL, url.c_str());
  take_known_protocols(c, h);
  follow_secure_redirects(c, h);
  c.set(h, CURLOPT_FAILONERROR, 1L);
  c.set(h, CURLOPT_NOSIGNAL, 1L);
  c.set(h, CURLOPT_CONNECTTIMEOUT, 15L);
  c.set(h, CURLOPT_LOW_SPEED_LIMIT, 100L);
  c.set(h, CURLOPT_LOW_SPEED_TIME, 30L);
  c.set(h, CURLOPT_USERAGENT, "tenon");
  c.set(h, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.start));
  c.set(h, CURLOPT_WRITEFUNCTION, on_data);
  c.set(h, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  c.set(h, CURLOPT_NOPROGRESS, 0L);
  c.set(h, CURLOPT_XFERINFOFUNCTION, on_progress);
  c.set(h, CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  const CURLcode code = c.perform(h);
  if (transfer.error != 0)
    throw IoError(
        fmt::format("{}: cannot be written: {}", part.path(), std::strerror(transfer.error)),
        {.file = part.path()});
  long answer = 0;
  c.info(h, CURLINFO_RESPONSE_CODE, &answer);
  if (answer >= 300 && answer < 400)
    throw IoError(fmt::format(
        "{}: the server redirects to an address without https://, which is not followed; name "
        "the address that has the file with --from",
        url));
  // Nothing left to download, or the partial file is too long: the checksum will tell.
  const bool beyond_end =
      answer == 416 || code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME;
  if (code == CURLE_OK || (transfer.start > 0 && beyond_end)) return;
  throw IoError(answer >= 400 ? fmt::format("{}: the server answers {}", url, answer)
                              : fmt::format("{}: {}", url, c.text(code)));
}

}  // namespace tenon::cli
