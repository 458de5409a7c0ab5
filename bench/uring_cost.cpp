// Scattered pieces of one file: a pwrite or pread each, against io_uring with up to 128 of them in one submission (raw system calls).
//
//   uring_cost FILE [ROUNDS]
//
// In each round both move the same pieces, the other one first each time. A table in Markdown: medians of io_uring / plain, so that
// above 1 io_uring is slower, of elapsed time with the second smallest and second largest round, and of processor time with that of
// kernel threads that work for the process left out. docs/internal/io-uring.md has what came out.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

struct Job {
    int descriptor = -1;
    std::byte* memory = nullptr;
    std::int64_t piece_bytes = 0;
    std::int64_t pieces = 0;
    bool writes = false;
    [[nodiscard]] std::int64_t file_offset(std::int64_t piece) const { return 2 * piece * piece_bytes; }
};

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// A submission and a completion queue that this program alone uses.
class Ring {
public:
    explicit Ring(unsigned entries) {
        io_uring_params given{};
        descriptor_ = static_cast<int>(::syscall(SYS_io_uring_setup, entries, &given));
        if (descriptor_ < 0) fail("io_uring_setup");
        entries_ = given.sq_entries;
        const std::size_t bytes = std::max<std::size_t>(given.sq_off.array + given.sq_entries * sizeof(unsigned),
                                                        given.cq_off.cqes + given.cq_entries * sizeof(io_uring_cqe));
        auto* base = static_cast<char*>(map(bytes, IORING_OFF_SQ_RING));
        submissions_ = static_cast<io_uring_sqe*>(map(entries_ * sizeof(io_uring_sqe), IORING_OFF_SQES));
        tail_ = reinterpret_cast<unsigned*>(base + given.sq_off.tail);
        mask_ = reinterpret_cast<unsigned*>(base + given.sq_off.ring_mask);
        array_ = reinterpret_cast<unsigned*>(base + given.sq_off.array);
        done_head_ = reinterpret_cast<unsigned*>(base + given.cq_off.head);
        done_tail_ = reinterpret_cast<unsigned*>(base + given.cq_off.tail);
        done_mask_ = reinterpret_cast<unsigned*>(base + given.cq_off.ring_mask);
        completions_ = reinterpret_cast<io_uring_cqe*>(base + given.cq_off.cqes);
    }

    /// Returns the number of system calls.
    std::int64_t move(const Job& job) {
        std::int64_t calls = 0;
        for (std::int64_t first = 0; first < job.pieces; first += entries_) {
            const auto now = static_cast<unsigned>(std::min<std::int64_t>(entries_, job.pieces - first));
            const unsigned tail = *tail_;
            for (unsigned i = 0; i < now; ++i) prepare(job, first + i, (tail + i) & *mask_);
            __atomic_store_n(tail_, tail + now, __ATOMIC_RELEASE);
            unsigned waiting = now;
            for (unsigned submit = now; waiting > 0; submit = 0) {
                if (::syscall(SYS_io_uring_enter, descriptor_, submit, waiting, IORING_ENTER_GETEVENTS, nullptr, 0) < 0)
                    fail("io_uring_enter");
                ++calls;
                waiting -= reap(job.piece_bytes);
            }
        }
        return calls;
    }

private:
    void* map(std::size_t bytes, std::int64_t what) const {
        void* const memory =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, what);
        if (memory == MAP_FAILED) fail("mmap");
        return memory;
    }

    void prepare(const Job& job, std::int64_t piece, unsigned index) {
        io_uring_sqe& submission = submissions_[index];
        std::memset(&submission, 0, sizeof submission);
        submission.opcode = job.writes ? IORING_OP_WRITE : IORING_OP_READ;
        submission.fd = job.descriptor;
        submission.addr = reinterpret_cast<std::uint64_t>(job.memory + piece * job.piece_bytes);
        submission.len = static_cast<std::uint32_t>(job.piece_bytes);
        submission.off = static_cast<std::uint64_t>(job.file_offset(piece));
        array_[index] = index;
    }

    unsigned reap(std::int64_t expected) {
        unsigned head = *done_head_;
        unsigned count = 0;
        for (; head != __atomic_load_n(done_tail_, __ATOMIC_ACQUIRE); ++head, ++count) {
            const int result = completions_[head & *done_mask_].res;
            if (result == expected) continue;
            errno = result < 0 ? -result : EIO;
            fail("a piece");
        }
        __atomic_store_n(done_head_, head, __ATOMIC_RELEASE);
        return count;
    }

    int descriptor_ = -1;
    unsigned entries_ = 0;
    unsigned *tail_, *mask_, *array_, *done_head_, *done_tail_, *done_mask_;
    io_uring_sqe* submissions_;
    io_uring_cqe* completions_;
};

std::int64_t move_plainly(const Job& job) {
    for (std::int64_t i = 0; i < job.pieces; ++i) {
        std::byte* const memory = job.memory + i * job.piece_bytes;
        const auto bytes = static_cast<std::size_t>(job.piece_bytes);
        const ssize_t moved = job.writes ? ::pwrite(job.descriptor, memory, bytes, job.file_offset(i))
                                         : ::pread(job.descriptor, memory, bytes, job.file_offset(i));
        if (moved != job.piece_bytes) fail(job.writes ? "pwrite" : "pread");
    }
    return job.pieces;
}

double seconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Cost {
    double elapsed = 0, processor = 0;
    std::int64_t calls = 0;
};

template <typename Move>
Cost cost_of(Move move) {
    const double elapsed = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const std::int64_t calls = move();
    return {seconds(CLOCK_MONOTONIC) - elapsed, seconds(CLOCK_PROCESS_CPUTIME_ID) - processor, calls};
}

enum class Case { fresh, again, read };

void compare(Ring& ring, Job job, Case kind, int rounds) {
    std::vector<double> elapsed, processor;
    Cost plain, together;
    job.writes = kind != Case::read;
    for (int round = 0; round < rounds; ++round) {
        for (int turn = 0; turn < 2; ++turn) {
            if (kind == Case::fresh && ::ftruncate(job.descriptor, 0) != 0) fail("ftruncate");
            if ((round + turn) % 2 == 0)
                plain = cost_of([&] { return move_plainly(job); });
            else
                together = cost_of([&] { return ring.move(job); });
        }
        elapsed.push_back(together.elapsed / plain.elapsed);
        processor.push_back(together.processor / plain.processor);
    }
    std::sort(elapsed.begin(), elapsed.end());
    std::sort(processor.begin(), processor.end());
    const auto middle = static_cast<std::size_t>(rounds / 2);
    std::printf("| %lld | %s | %lld | %lld | %.2f [%.2f, %.2f] | %.2f |\n", static_cast<long long>(job.piece_bytes),
                kind == Case::fresh   ? "new"
                : kind == Case::again ? "written over"
                                      : "read",
                static_cast<long long>(plain.calls), static_cast<long long>(together.calls), elapsed[middle],
                elapsed[1], elapsed[elapsed.size() - 2], processor[middle]);
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
    if (argc < 2 || rounds < 3) {
        std::fprintf(stderr, "uring_cost FILE [ROUNDS, 3 or more]\n");
        return 2;
    }
    constexpr std::int64_t most_bytes = 32 << 20;
    constexpr std::int64_t most_pieces = 16384;
    std::vector<std::byte> memory(most_bytes, std::byte{7});
    const int descriptor = ::open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (descriptor < 0) fail(argv[1]);
    Ring ring(128);
    std::printf("| piece | | calls | with io_uring | elapsed | processor |\n|---|---|---|---|---|---|\n");
    for (const std::int64_t piece : {512, 4096, 65536, 1 << 20}) {
        const Job job{descriptor, memory.data(), piece, std::min(most_bytes / piece, most_pieces)};
        for (const Case kind : {Case::fresh, Case::again, Case::read}) compare(ring, job, kind, rounds);
    }
    ::unlink(argv[1]);
    return 0;
}
