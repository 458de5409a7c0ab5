// Handing over: bytes that a rank gives to another one and goes on, while the other takes them when it comes to it. Workers and delegates
// of partitioned files speak in this way (rbIO: Liu et al., section 2.2).
// What does not live here: what messages mean, and how much memory who takes them has (partition/hand_over.hpp, partition/delegate.hpp);
// bytes for which all ranks meet (delivery.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "mpi/mpi.hpp"

namespace ioweir::exchange {

/// Sleeps longer and longer, a millisecond at most: who waits takes no processor from who works.
class Patience {
public:
    void wait();
    void reset() { us_ = 0; }
    /// How long the next wait is, for who waits otherwise.
    [[nodiscard]] int next_us();

private:
    int us_ = 0;
};

/// Messages to one rank, out of memory of ours that is gone round: who hands over waits only where it is full.
class SendRing {
public:
    /// `to`: a rank of `comm`, which must outlive this. `room`: bytes that may be on their way. Throws std::bad_alloc.
    SendRing(MPI_Comm comm, int to, std::int64_t room);
    SendRing(const SendRing&) = delete;
    SendRing& operator=(const SendRing&) = delete;
    ~SendRing();

    /// The longest message.
    [[nodiscard]] std::int64_t most_bytes() const { return room_ - 1; }
    /// `bytes` that lie together, for the next message; waits until there are so many.
    [[nodiscard]] char* take(std::int64_t bytes);
    /// Sends what take() gave last.
    void post(char* from, std::int64_t bytes, int tag);
    /// Lets go of what the other rank has taken; `waits`: of the oldest in any case.
    void collect(bool waits);
    /// Until the other rank has taken everything.
    void drain();

private:
    struct Sent {
        MPI_Request request = MPI_REQUEST_NULL;
        std::int64_t end = 0;  ///< behind its bytes in memory_
    };

    MPI_Comm comm_;
    int to_;
    std::int64_t room_;
    std::unique_ptr<char[]> memory_;
    std::int64_t
        head_ = 0,
        tail_ = 0;  ///< what is on its way: [tail_, head_), or, where head_ < tail_, to the end and from the beginning
    std::deque<Sent> sent_;
};

/// Short messages to any rank, each kept until it is sent.
class Letters {
public:
    void post(MPI_Comm comm, int to, int tag, std::string text);
    void wait_all();

private:
    struct Letter {
        MPI_Request request = MPI_REQUEST_NULL;
        std::unique_ptr<std::string> text;
    };
    std::deque<Letter> sent_;
};

/// A message that has come and has not been taken yet.
struct Arrival {
    int tag = 0;
    int bytes = 0;
};

/// What has come from a rank, with any tag, if anything has; it returns at once.
[[nodiscard]] std::optional<Arrival> arrived(MPI_Comm comm, int from);
/// Takes it; `to` has room for its bytes.
void take_arrival(MPI_Comm comm, int from, const Arrival& arrival, char* to);
/// Lets the MPI library go on with messages of others that wait for this process.
void let_messages_go_on(MPI_Comm comm);

}  // namespace ioweir::exchange
