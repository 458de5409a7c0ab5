// Fuzzes what is kept of a probe: of whatever lies in the file nothing is believed but what could have been written there.
// An input: a byte (1: the text is sealed; the rest: how many targets), 8 bytes (the time), 2 bytes (the age), and the text.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/checked_text.hpp"
#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "base/testing.hpp"
#include "probe/cache.hpp"

namespace ioweir {
namespace {

/// One file, again and again: in memory where the caller says so by TMPDIR.
class File {
public:
    File() : path_(folder_.file("kept")), descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        require(descriptor_ >= 0, "a file for the input");
    }
    ~File() { ::close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    void put(const std::string& text) const {
        require(::ftruncate(descriptor_, static_cast<off_t>(text.size())) == 0 &&
                    ::pwrite(descriptor_, text.data(), text.size(), 0) == std::ssize(text),
                "room for the input");
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    TemporaryFolder folder_;
    std::string path_;
    int descriptor_;
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const std::string facts = "ioweir probe 1\n1000\n15000000\n0\n12345678.90123\n";
    const auto seed = [](std::uint8_t what, std::string_view text) {
        return FuzzSeed().number(what).number<std::int64_t>(1060).number<std::uint16_t>(60).text(text).bytes();
    };
    return {seed(3 << 1 | 1, facts), seed(3 << 1, with_check(facts)), seed(0 << 1 | 1, "ioweir probe 1\n1060\n")};
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    static const File file;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>();
    const auto now_s = input.number<std::int64_t>();
    const std::int64_t age_s = input.number<std::uint16_t>();
    const std::size_t targets = what >> 1;
    file.put((what & 1) != 0 ? with_check(input.rest()) : input.rest());
    const auto kept = probe::read_cache(file.path(), targets, now_s, age_s);
    if (!kept) return 0;
    require(kept->rates.size() == targets, "a rate for each target");
    require(kept->age_s >= 0 && kept->age_s <= age_s, "an age that counts");
    for (const double rate : kept->rates) require(rate >= 0 && rate < 1e300 * 1e300, "a rate");
    // Writing makes a file of its own: seldom, for it takes longer than all of the rest.
    static int turn = 0;
    if (++turn % 64 != 0) return 0;
    const std::string copy = file.path() + ".copy/ioweir/kept";
    require(probe::write_cache(copy, kept->rates, now_s) == 0, "what is read can be written");
    const auto again = probe::read_cache(copy, targets, now_s, 0);
    require(again && again->rates == kept->rates, "what is written is read as it was");
    return 0;
}
