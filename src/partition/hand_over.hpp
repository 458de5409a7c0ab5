// The worker's side of rbIO: blocks are copied into memory of ours, so that the program goes on at once with its own. To a
// delegate that is another rank they are sent from there (exchange/hand_over.hpp); passage.hpp has the way to one that is a thread of this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exchange/hand_over.hpp"
#include "mpi/mpi.hpp"
#include "partition/agreement.hpp"
#include "partition/wire.hpp"

namespace ioweir::partition {

/// Communicators of a service, each ours. Results go by one of their own: a delegate that is a thread sends to its own rank, too.
struct Channels {
    MPI_Comm blocks = MPI_COMM_NULL;   ///< of all ranks, from workers to delegates
    MPI_Comm results = MPI_COMM_NULL;  ///< of all ranks, from delegates to workers
};

/// What a worker says to its delegate, and hears from it.
class HandOver {
public:
    HandOver() = default;
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
    virtual ~HandOver() = default;

    /// Copies `data`, and returns when there was room for all of it: the delegate takes no more than it has memory for. `wire.bytes` is filled in.
    virtual void send(Wire wire, const void* data, std::int64_t bytes) = 0;
    /// A block: its header and its items.
    virtual void send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) = 0;
    /// Until the delegate has told of `sets` sets in all, or without waiting for those that it has told of by now. What failed first, once.
    [[nodiscard]] virtual std::optional<Failure> results(std::int64_t sets) = 0;
    [[nodiscard]] std::optional<Failure> results() { return results(0); }
    /// Until everything is with the delegate.
    virtual void drain() = 0;
    /// What send() takes at most.
    [[nodiscard]] virtual std::int64_t most_bytes() const = 0;
};

/// By messages.
class HandOverBySending final : public HandOver {
public:
    /// `delegate`: its rank. Communicators must outlive this. `room`: bytes that may be on their way.
    HandOverBySending(const Channels& channels, int delegate, std::int64_t room);

    void send(Wire wire, const void* data, std::int64_t bytes) override;
    /// In as many messages as it takes.
    void send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) override;
    using HandOver::results;
    [[nodiscard]] std::optional<Failure> results(std::int64_t sets) override;
    void drain() override { ring_.drain(); }
    [[nodiscard]] std::int64_t most_bytes() const override;
    /// The longest message, with its Wire, of a worker that may have `room` bytes on their way.
    [[nodiscard]] static std::int64_t longest_message(std::int64_t room);

private:
    void post(char* from, const Wire& wire);
    void take_result(const exchange::Arrival& arrival);

    Channels channels_;
    int delegate_;
    std::int64_t room_;
    exchange::SendRing ring_;
    std::int64_t told_ = 0;
    std::optional<Failure> failure_;
};

}  // namespace ioweir::partition
