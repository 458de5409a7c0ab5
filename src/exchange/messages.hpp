// What the exchange sends between nodes: packets of a bounded size, each with the places of its bytes in the writer's buffer.
// What does not live here: who sends what when (exchange*.cpp).
//
// Of the bytes sent, those that are not data: 32 a packet, and its runs, written as distances, lengths and repetitions: a few bytes for
// any regular pattern, two or three a piece for irregular ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "exchange/scratch.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::exchange {

/// Bytes [at, at + bytes) of a buffer.
struct Run {
    std::int64_t at = 0;
    std::int64_t bytes = 0;
};

/// Writes runs with rising places as numbers of 7 bits a byte.
class RunWriter {
public:
    static constexpr std::int64_t capacity = 32 * 1024;
    /// False when it is full: the run is not in it.
    [[nodiscard]] bool add(Run run);
    /// Ends the writing; then data() and size().
    void finish();
    [[nodiscard]] const std::byte* data() const { return bytes_.data(); }
    [[nodiscard]] std::int64_t size() const { return size_; }
    void clear();

private:
    void put(std::uint64_t value);
    void put_pending();

    static constexpr std::int64_t longest_entry = 30;
    std::array<std::byte, capacity> bytes_;
    std::int64_t size_ = 0;
    std::int64_t end_ = 0;  // of the runs so far
    std::int64_t gap_ = 0;  // of the pending entry
    std::int64_t length_ = 0;
    std::int64_t repeats_ = 0;  // 0: nothing pending
};

/// Reads them again. What is no list of runs within [0, limit) ends the list.
class RunReader {
public:
    RunReader(const std::byte* data, std::int64_t size, std::int64_t limit)
        : at_(data), end_(data + size), limit_(limit) {}
    bool next(Run& run);

private:
    bool get(std::int64_t& value);

    const std::byte* at_;
    const std::byte* end_;
    std::int64_t limit_;
    std::int64_t place_ = 0;
    std::int64_t gap_ = 0;
    std::int64_t length_ = 0;
    std::int64_t repeats_ = 0;
};

struct PacketHeader {
    std::int32_t round = 0;
    std::int32_t error = 0;       ///< replies: errno value
    std::int32_t last = 0;        ///< of its sender for this round
    std::int32_t runs_bytes = 0;  ///< behind the data
    std::int64_t data_bytes = 0;  ///< behind the header
    std::int64_t wanted = 0;      ///< requests and their replies: bytes asked for
};
static_assert(sizeof(PacketHeader) == 32);

enum class Tag : int { data = 1, request = 2, reply = 3, receipt = 4, turn = 5 };

/// A few buffers of packets that are on their way, and one for the packet that has come.
class Mailbox {
public:
    /// Most data of a packet.
    static constexpr std::int64_t data_capacity = 1 << 20;

    /// May throw std::bad_alloc; once it has returned nothing else here does.
    void open(MPI_Comm comm);

    enum class Purpose { question, answer };  // answers never wait for questions: each has its own buffers
    /// A buffer to fill, or null while all are on their way.
    [[nodiscard]] std::byte* free_buffer(Purpose purpose);
    /// Sends the buffer that free_buffer() gave last for this purpose: header, header.data_bytes that were put behind the place of
    /// the header, and the runs.
    void send(Purpose purpose, int to, Tag tag, const PacketHeader& header, const RunWriter* runs);
    [[nodiscard]] bool all_sent();
    [[nodiscard]] std::int64_t sent() const { return sent_; }
    [[nodiscard]] std::int64_t sent_bytes() const { return sent_bytes_; }
    RunWriter& runs() { return memory_->runs; }

    struct Packet {
        PacketHeader header;
        const std::byte* data;
        const std::byte* runs;
    };
    /// The next packet of that rank, valid until the next call; false when there is none yet.
    bool receive(int from, Tag tag, Packet& packet);

private:
    static constexpr std::size_t buffers_each = 2;
    static constexpr std::size_t packet_bytes = sizeof(PacketHeader) + data_capacity + RunWriter::capacity;
    struct Memory {
        std::array<std::array<std::byte, packet_bytes>, 2 * buffers_each> outgoing;
        std::array<std::byte, packet_bytes> incoming;
        RunWriter runs;
    };

    MPI_Comm comm_{};
    std::unique_ptr<Memory> memory_;
    std::array<MPI_Request, 2 * buffers_each> requests_{};
    std::size_t given_[2] = {};
    std::int64_t sent_ = 0;
    std::int64_t sent_bytes_ = 0;
};

}  // namespace ioweir::exchange
