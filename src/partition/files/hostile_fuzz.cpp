// Fuzzes the readers of partitioned files (`make fuzz`): see hostile_files.hpp. An input says what is changed in a whole file, so that it is short and most of it is reached: a byte (even: a
// set's file, odd: a serial one), 4 bytes of length to cut it to, then pieces of 4 bytes of offset, 2 of length, and the bytes themselves (little-endian).
// What does not live here: a main().
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fuzz_input.hpp"
#include "partition/files/hostile_files.hpp"
#include "partition/files/whole_files.hpp"

namespace {

/// In memory; libFuzzer ends without a word, so that each input has its own.
class Folder {
public:
    Folder() {
        if (::mkdtemp(path_.data()) == nullptr) std::abort();
    }
    ~Folder() { (void)::rmdir(path_.c_str()); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_ = "/dev/shm/ioweir-fuzz-XXXXXX";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* at, std::size_t left) {
    std::uint8_t kind = 0;
    std::uint32_t length = 0, offset = 0;
    std::uint16_t count = 0;
    if (!ioweir::take(at, left, kind) || !ioweir::take(at, left, length)) return 0;
    std::string bytes = kind % 2 == 0 ? ioweir::partition::file_bytes({0, 3}) : ioweir::partition::serial_bytes();
    if (length < bytes.size()) bytes.resize(length);
    while (ioweir::take(at, left, offset) && ioweir::take(at, left, count)) {
        const std::size_t now = std::min<std::size_t>(count, left);
        if (offset < bytes.size()) std::memcpy(bytes.data() + offset, at, std::min(now, bytes.size() - offset));
        at += now;
        left -= now;
    }
    const Folder folder;
    const std::string once = ioweir::partition::read_hostile(folder.path(), bytes);
    if (once != ioweir::partition::read_hostile(folder.path(), bytes)) std::abort();
    return 0;
}
