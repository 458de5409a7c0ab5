// Where the figures of DirectTuning come from: the direct path with different tunings on one process, no MPI at run time.
//   direct_bench DIRECTORY
// Prints, for pieces and holes of several lengths, the best of some runs in ns per piece: operation by operation against
// sieving (read), and iovec against copying together (write). Results: docs/internal/direct-path.md.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "exchange/direct.hpp"
#include "storage/posix.hpp"

namespace {

using namespace ioweir;

layout::FlatType spaced(std::int64_t length, std::int64_t stride) {
    return layout::FlatTypeBuilder::run(0, length).build(0, stride);
}

/// Nanoseconds a piece, the best of several runs.
template <typename Transfer>
double best_ns(std::int64_t pieces, Transfer transfer) {
    double best = 1e18;
    for (int run = 0; run < 7; ++run) {
        const auto started = std::chrono::steady_clock::now();
        transfer();
        const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - started;
        best = std::min(best, elapsed.count() / static_cast<double>(pieces));
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: direct_bench DIRECTORY\n");
        return 2;
    }
    const std::string path = std::string(argv[1]) + "/direct_bench.data";
    storage::PosixBackend backend;
    const storage::Opened opened = backend.open(path.c_str(), O_RDWR | O_CREAT);
    if (opened.error != 0) {
        std::fprintf(stderr, "direct_bench: cannot create %s\n", path.c_str());
        return 1;
    }
    constexpr std::int64_t total = 16 << 20;
    std::vector<std::byte> memory(4 * total, std::byte{1});
    backend.write_at(opened.descriptor, memory.data(), std::ssize(memory), 0);
    const layout::FlatType bytes = spaced(1, 1);

    std::printf("read, contiguous memory: piece and hole in bytes, ns per piece\n%8s %8s %12s %12s\n", "piece", "hole",
                "one by one", "sieved");
    exchange::DirectTuning single, sieve;
    single.sieve_below_bytes = -1;
    sieve.sieve_below_bytes = sieve.buffer_bytes;
    for (const std::int64_t piece : {8, 64, 256, 512, 1024, 2048, 4096, 8192}) {
        for (const std::int64_t hole : {8, 256, 512, 1024, 2048, 4096, 8192}) {
            const std::int64_t pieces = std::min<std::int64_t>(total / (piece + hole), 20000);
            const layout::FileView view{0, 1, std::make_shared<layout::FlatType>(spaced(piece, piece + hole))};
            const exchange::Memory to{memory.data(), &bytes, pieces * piece};
            const auto run = [&](const exchange::DirectTuning& tuning) {
                return best_ns(pieces,
                               [&] { exchange::read_direct(backend, opened.descriptor, to, {&view, 0}, tuning); });
            };
            std::printf("%8lld %8lld %12.0f %12.0f\n", static_cast<long long>(piece), static_cast<long long>(hole),
                        run(single), run(sieve));
        }
    }

    std::printf("contiguous file, scattered memory: ns per piece\n%8s %12s %12s %12s %12s\n", "piece", "writev",
                "copy+write", "readv", "read+copy");
    exchange::DirectTuning vectored, copied;
    vectored.copy_below_bytes = vectored.pick_below_bytes = 0;
    copied.copy_below_bytes = copied.pick_below_bytes = copied.sieve_below_bytes = copied.buffer_bytes;
    for (const std::int64_t piece : {8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}) {
        const std::int64_t pieces = std::min<std::int64_t>(total / piece, 100000);
        const layout::FlatType scattered = spaced(piece, 2 * piece);
        const layout::FileView view{0, 1, std::make_shared<layout::FlatType>(bytes)};
        const exchange::Memory from{memory.data(), &scattered, pieces * piece};
        const auto run = [&](bool writing, const exchange::DirectTuning& tuning) {
            return best_ns(pieces, [&] {
                if (writing) {
                    exchange::write_direct(backend, opened.descriptor, from, {&view, 0}, tuning);
                } else {
                    exchange::read_direct(backend, opened.descriptor, from, {&view, 0}, tuning);
                }
            });
        };
        std::printf("%8lld %12.1f %12.1f %12.1f %12.1f\n", static_cast<long long>(piece), run(true, vectored),
                    run(true, copied), run(false, vectored), run(false, copied));
    }
    backend.close(opened.descriptor);
    ::unlink(path.c_str());
    return 0;
}
