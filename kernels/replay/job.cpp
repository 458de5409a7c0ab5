#include "kernels/replay/job.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/checked.hpp"

namespace ioweir::replay {

void fail(const std::string& what) {
    std::fprintf(stderr, "replay_runner: %s\n", what.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

std::string Job::path(std::int64_t file) const { return target + "/" + at(script.files, file, "file"); }

Span Job::span(std::int64_t type, std::int64_t count) const {
    const MadeType& made = at(types, type, "type");
    if (count <= 0) return {};
    const auto last = checked_multiply(count - 1, made.extent);
    if (!last) fail("a call of " + std::to_string(count) + " instances of a type reaches too far");
    const std::int64_t lower = made.true_lower + std::min<std::int64_t>(0, *last);
    const std::int64_t upper = made.true_lower + made.true_extent + std::max<std::int64_t>(0, *last);
    return {lower, upper - lower};
}

void Job::allocate(std::int64_t bytes) {
    written_from_.resize(static_cast<std::size_t>(bytes + slack));
    read_into_.resize(static_cast<std::size_t>(bytes + slack));
    // Nothing that compresses: splitmix64 (Steele et al. 2014).
    std::uint64_t state = script.seed ^ (static_cast<std::uint64_t>(script.rank) << 32);
    for (std::size_t at = 0; at + 8 <= written_from_.size(); at += 8) {
        state += 0x9E37'79B9'7F4A'7C15ULL;
        std::uint64_t mixed = state;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58'476D'1CE4'E5B9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EBULL;
        mixed ^= mixed >> 31;
        std::memcpy(written_from_.data() + at, &mixed, sizeof mixed);
    }
}

char* Job::place(std::int64_t bytes, bool writes) {
    std::vector<char>& memory = writes ? written_from_ : read_into_;
    if (bytes < 0 || bytes > std::ssize(memory) - slack) fail("a call of " + std::to_string(bytes) + " bytes");
    constexpr std::int64_t page = 4096;
    return memory.data() + ++turn_ * page % slack;
}

void* Job::memory(std::int64_t type, std::int64_t count, bool writes) {
    const Span touched = span(type, count);
    // Types with absolute addresses begin far from 0: the address is made as an integer.
    return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(place(touched.bytes, writes)) - touched.lower);
}

void* Job::bytes(std::int64_t count, bool writes) { return place(count, writes); }

void Job::note_failure(const char* call, const std::string& why) {
    if (failed++ == 0) first_failure = std::string(call) + ": " + why;
}

void Job::check(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    note_failure(call, std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace ioweir::replay
