// Writes a trace as a long run would have left it: make_trace DIR EVENTS [RANKS [FILES [PATTERN]]], PATTERN regular or random.
// One node file; every rank makes collective MPI-IO writes that hold data-sieving cycles (lock, pread, pwrite, unlock), MPI-IO
// reads with a pread inside, and POSIX calls of its own.
// What does not live here: measuring what reading it costs (report_speed.py).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "format/writer.hpp"
#include "ioweir_generated/functions.hpp"

using namespace ioweir::format;  // NOLINT

namespace {

constexpr std::uint64_t tick_ns_per_call = 900;
constexpr std::int64_t block_bytes = 4096;

class Rank {
public:
    /// `hold`: groups of calls on one file before the next one.
    Rank(NodeWriter& writer, std::uint32_t rank, std::uint32_t ranks, std::uint32_t files, std::uint64_t hold,
         bool random)
        : writer_(&writer), random_(random), engine_(rank), files_(files), hold_(hold) {
        const std::uint64_t image = rank + 1;
        thread_ = writer.begin_thread(image, 1, 1000 + rank, 1);
        writer.record(thread_, ProcessRecord{{}, {}, {}, image, 0, 1000 + rank, 1, 1}, "/opt/solver");
        writer.record(thread_, RankRecord{{}, {}, {}, rank, ranks, 10}, "synthetic MPI");
        for (std::uint32_t file = 1; file <= files; ++file)
            writer.record(thread_, FileRecord{{}, {}, {}, file, 0}, "/scratch/run/dump-" + std::to_string(file));
        offset_.assign(files + 1, static_cast<std::int64_t>(rank) << 36);
    }

    /// One group of calls, 7 events on average.
    void step() {
        file_ = static_cast<std::uint32_t>(steps_ / hold_ % files_) + 1;
        const std::int64_t bytes = random_ ? 1 + static_cast<std::int64_t>(engine_() % 1'000'000) : block_bytes;
        switch (steps_++ % 4) {
            case 0: {
                const std::uint32_t outer = enter();
                const std::uint64_t begun = clock_;
                inner(Function::fcntl_lock, outer, 8 * bytes);
                inner(Function::pread, outer, bytes);
                inner(Function::pwrite, outer, bytes);
                inner(Function::pread, outer, bytes);
                inner(Function::pwrite, outer, bytes);
                inner(Function::fcntl_unlock, outer, 8 * bytes);
                leave(Function::MPI_File_write_at_all, outer, begun, bytes);
                break;
            }
            case 1:
            case 2:
                for (int i = 0; i < 4; ++i) {
                    const std::uint32_t outer = enter();
                    const std::uint64_t begun = clock_;
                    inner(Function::pread, outer, bytes);
                    leave(Function::MPI_File_read_at, outer, begun, bytes);
                }
                break;
            default:
                for (int i = 0; i < 5; ++i) {
                    enter();
                    const std::uint64_t begun = clock_;
                    clock_ += pause();
                    record(Function::pwrite, sequence_, 0, 0, begun, bytes);
                    clock_ += pause();
                }
        }
    }
    [[nodiscard]] std::uint64_t events() const { return events_; }
    void end() {
        writer_->record(thread_, FinalizeRecord{{}, {}, {}, clock_ + 1});
        writer_->record(thread_, EndRecord{{}, {}, {}, clock_ + 2});
    }

private:
    std::uint64_t pause() { return tick_ns_per_call / 2 + engine_() % tick_ns_per_call; }
    std::uint32_t enter() {
        clock_ += pause() / 8;
        return ++sequence_;
    }
    void inner(Function function, std::uint32_t parent, std::int64_t bytes) {
        ++sequence_;
        const std::uint64_t begun = clock_ + pause() / 8;
        clock_ = begun + pause();
        record(function, sequence_, parent, 1, begun, bytes);
    }
    void leave(Function function, std::uint32_t sequence, std::uint64_t begun, std::int64_t bytes) {
        clock_ += pause() / 4;
        record(function, sequence, 0, 0, begun, bytes);
        offset_[file_] += bytes;
    }
    void record(Function function, std::uint32_t sequence, std::uint32_t parent, std::uint8_t origin,
                std::uint64_t begun, std::int64_t bytes) {
        const std::int64_t at = random_ ? static_cast<std::int64_t>(engine_() >> 24) : offset_[file_];
        writer_->event(thread_, EventFields{.function = static_cast<std::uint16_t>(function),
                                            .origin = origin,
                                            .failed = false,
                                            .file = file_,
                                            .sequence = sequence,
                                            .parent = parent,
                                            .start = begun,
                                            .end = clock_,
                                            .offset = at,
                                            .bytes = bytes});
        ++events_;
    }

    NodeWriter* writer_;
    bool random_;
    std::mt19937_64 engine_;
    std::uint32_t files_;
    std::uint64_t hold_;
    std::uint32_t thread_ = 0;
    std::uint32_t sequence_ = 0;
    std::uint32_t file_ = 1;
    std::uint64_t steps_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t clock_ = 1000;
    std::vector<std::int64_t> offset_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: make_trace DIR EVENTS [RANKS [FILES [regular|random]]]\n");
        return 2;
    }
    const std::uint64_t wanted = std::strtoull(argv[2], nullptr, 10);
    const auto ranks = static_cast<std::uint32_t>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 4);
    const auto files = static_cast<std::uint32_t>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 20);
    const bool random = argc > 5 && std::strcmp(argv[5], "random") == 0;
    if (wanted == 0 || ranks == 0 || files == 0) {
        std::fprintf(stderr, "make_trace: EVENTS, RANKS and FILES must be above 0\n");
        return 2;
    }
    auto made = NodeWriter::create(std::string(argv[1]) + "/node-bench.iowt", "bench", 1'700'000'000'000'000'000);
    if (!made) {
        std::fprintf(stderr, "make_trace: %s\n", made.error().message().c_str());
        return 1;
    }
    NodeWriter writer = made.take();
    // So that every file is used in short traces, too.
    const std::uint64_t hold = std::clamp<std::uint64_t>(wanted / (7ULL * ranks * files), 1, 64);
    std::vector<Rank> all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) all.emplace_back(writer, rank, ranks, files, hold, random);
    for (std::uint64_t events = 0; events < wanted;) {
        events = 0;
        for (Rank& rank : all) {
            rank.step();
            events += rank.events();
        }
    }
    std::uint64_t events = 0;
    for (Rank& rank : all) {
        rank.end();
        events += rank.events();
    }
    if (const auto finished = writer.finish(); !finished) {
        std::fprintf(stderr, "make_trace: %s\n", finished.error().message().c_str());
        return 1;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(events));
    return 0;
}
