// A fuzz target without the fuzzer: its seeds, what was once found, and some thousand changes of both, the same in every run.
// IOWEIR_TEST_FUZZ_ROUNDS: how many changes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/fuzz_target.hpp"

namespace ioweir {
namespace {

using Random = std::mt19937_64;

/// Targets that need files write them some thousand times: in memory, unless somebody wants them elsewhere.
[[maybe_unused]] const int files_in_memory = ::access("/dev/shm", W_OK) == 0 ? ::setenv("TMPDIR", "/dev/shm", 0) : 0;

void run(const std::string& input) {
    // Of the very length, so that reading beyond it is seen.
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> found_before() {
    std::vector<std::string> inputs;
    // The program is called NAME_replay_test.
    const std::string program = program_invocation_short_name;
    const auto folder = std::filesystem::path(IOWEIR_CORPORA) / program.substr(0, program.rfind("_replay_test"));
    if (!std::filesystem::exists(folder)) return inputs;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream stream(entry.path(), std::ios::binary);
        inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
    std::sort(inputs.begin(), inputs.end());
    return inputs;
}

std::string change_once(std::string input, const std::vector<std::string>& all, Random& random) {
    constexpr std::uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xbf, 0xff, '0', '9', '-', ' ', '\n', '"'};
    constexpr std::int64_t numbers[] = {
        0, -1, 1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, UINT32_MAX, std::int64_t{1} << 40, 4096};
    const auto place = [&] { return input.empty() ? 0 : random() % input.size(); };
    const auto letter = [&] { return static_cast<char>(telling[random() % std::size(telling)]); };
    switch (input.empty() ? 3 : random() % 9) {
        case 0:
            input[place()] ^= static_cast<char>(1U << random() % 8);
            break;
        case 1:
            input[place()] = static_cast<char>(random());
            break;
        case 2:
            input[place()] = letter();
            break;
        case 3:
            input.insert(place(), 1 + random() % 8, letter());
            break;
        case 4:
            input.erase(place(), 1 + random() % 16);
            break;
        case 5: {  // a part twice
            const std::string part = input.substr(place(), 1 + random() % 64);
            input.insert(place(), part);
            break;
        }
        case 6: {  // the end of another one
            const std::string& other = all[random() % all.size()];
            input.resize(place());
            if (!other.empty()) input += other.substr(random() % other.size());
            break;
        }
        case 7: {  // a number in binary
            const std::int64_t number = numbers[random() % std::size(numbers)];
            const std::size_t at = place();
            const std::size_t bytes = std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, input.size() - at);
            input.replace(at, bytes, reinterpret_cast<const char*>(&number), bytes);
            break;
        }
        default: {  // a number in decimal
            const std::string digits = std::to_string(numbers[random() % std::size(numbers)]);
            const std::size_t at = input.find_first_of("0123456789", place());
            if (at == std::string::npos) break;
            const std::size_t end = std::min(input.find_first_not_of("0123456789", at), input.size());
            input.replace(at, end - at, digits);
            break;
        }
    }
    return input;
}

TEST(FuzzReplay, SeedsKeepThePromises) {
    const auto seeds = fuzz_seeds();
    ASSERT_FALSE(seeds.empty());
    for (const std::string& seed : seeds) run(seed);
    run("");
}

TEST(FuzzReplay, WhatWasFoundStaysMended) {
    for (const std::string& input : found_before()) run(input);
}

TEST(FuzzReplay, ChangedSeedsKeepThePromises) {
    std::vector<std::string> all = fuzz_seeds();
    for (std::string& input : found_before()) all.push_back(std::move(input));
    ASSERT_FALSE(all.empty());
    const char* const wished = std::getenv("IOWEIR_TEST_FUZZ_ROUNDS");
    const int rounds = wished != nullptr ? std::atoi(wished) : 3000;
    Random random(20'260'101);
    for (int round = 0; round < rounds; ++round) {
        std::string input = all[random() % all.size()];
        for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes)
            input = change_once(std::move(input), all, random);
        run(input);
    }
#ifndef __SANITIZE_ADDRESS__  // which takes memory of its own
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    EXPECT_LT(used.ru_maxrss, 512 << 10) << "KiB: something was reserved for what an input only claims";
#endif
}

}  // namespace
}  // namespace ioweir
