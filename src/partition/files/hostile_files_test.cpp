#include "partition/files/hostile_files.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <random>

#include "partition/files/set_for_tests.hpp"

namespace ioweir::partition {
namespace {

class HostileFilesTest : public SetsTest {
protected:
    /// Small numbers, signs, ends and large numbers where text and numbers are.
    static void spoil(std::string& bytes, const std::vector<std::size_t>& places, std::mt19937_64& dice) {
        const char letters[] = "\0\n :@<>-0179x\x7f\xff";
        for (int i = static_cast<int>(dice() % 5); i >= 0; --i) {
            const std::size_t at = places[dice() % places.size()] + dice() % 40;
            if (at >= bytes.size()) continue;
            if (dice() % 6 == 0) {
                const std::string large = dice() % 2 == 0 ? "9223372036854775807" : "-18446744073709551616";
                bytes.replace(at, std::min(large.size(), bytes.size() - at), large, 0,
                              std::min(large.size(), bytes.size() - at));
            } else {
                bytes[at] = letters[dice() % (sizeof letters - 1)];
            }
        }
        if (dice() % 8 == 0) bytes.resize(dice() % (bytes.size() + 1));
    }
};

/// 80 sets and 80 serial files, the same in every run, within 512 MiB more than there is now.
TEST_F(HostileFilesTest, SpoiledFilesAreErrorsOrReadAlike) {
    const std::string set = file_bytes({0, 3});
    const std::string serial = serial_bytes();
    const std::vector<std::size_t> places_of_set{
        0, 13, 64, 96, 105, 128, 256, 384, 512, 8192, 8200, 8208, 4 << 20, (4 << 20) + 1024, (4 << 20) + 2056};
    std::vector<std::size_t> places_of_serial;
    for (std::size_t at = 0; at < serial.size(); at += 20) places_of_serial.push_back(at);
    std::mt19937_64 dice(20261122);
    int whole = 0, refused = 0;
    for (int number = 0; number < 160; ++number) {
        const bool is_set = number % 2 == 0;
        std::string bytes = is_set ? set : serial;
        spoil(bytes, is_set ? places_of_set : places_of_serial, dice);
        const std::string text = read_hostile(folder_, bytes);
        (text.find("3 parts\n0 1\n8 1\n16 1\n") == 0 ? whole : refused) += 1;
    }
    EXPECT_GT(whole, 3) << "some changes are where nothing is";
    EXPECT_GT(refused, 60);
#ifndef __SANITIZE_ADDRESS__  // which takes memory of its own
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    EXPECT_LT(used.ru_maxrss, 512 << 10) << "KiB: nothing was reserved for what a file only claims";
#endif
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(HostileFilesTest, WholeFilesAreRead) {
    EXPECT_EQ(read_hostile(folder_, file_bytes({0, 2})).substr(0, 16), "2 parts\n0 1\n8 1\n");
}

}  // namespace
}  // namespace ioweir::partition
