// SharedReads: what the ranks of one node tell each other in memory that they share, so that a collective read of a container with an
// index needs no meeting. For handles of one node whose rule has visibility = "sync"; others reduce (share_container).
//
// Each rank says there whether it has written what is in no index yet, and in how many collective reads of the handle it has come. Whoever
// has come into one looks at that: ranks that have such bytes are waited for until they come, too, and bring them into their index. In a
// program whose calls only read, nobody waits.
//
// Promises, for a collective read, of what the ranks of the handle have written through whichever handle of this process's container:
// - It sees what has happened before its own call in MPI's sense: a message or a barrier lies between.
// - Where this rank has made a collective write since its last collective read or sync, and where ranks read for each other (`all`), it sees
//   what each rank has written before that rank's call of the same read.
// - It waits for nobody who has nothing to show in the first case, and MPI makes progress while it waits. A rank that cannot bring its bytes
//   into its index comes all the same.
// - Nothing of it is left when its processes have ended, in whatever way.
// Example: ranks 0 and 1; rank 1 writes, and tells rank 0. Both read collectively, rank 0 first: it finds that rank 1 has something and has come
// into no read, and waits for the first one of rank 1, which shows what it has. In the second read nobody has anything.
// What does not live here: bringing bytes into an index (container), when that is asked for (mapped.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "container/container.hpp"
#include "engine/calls/together.hpp"
#include "exchange/shared_memory.hpp"

namespace ioweir::engine {

class SharedReads final : public container::IndexWatcher {
public:
    /// Collective over the team, whose ranks are those of the handle and all on one node. Null on every rank where they cannot share memory;
    /// `why` says so then.
    [[nodiscard]] static std::shared_ptr<SharedReads> make(std::shared_ptr<Team> team,
                                                           std::shared_ptr<container::Container> container,
                                                           std::string& why);
    ~SharedReads() override;

    /// This rank makes a collective write.
    void note_write() { waits_for_all_ = true; }
    /// All ranks have met, and whatever they had written before is in indexes.
    void note_meeting() { waits_for_all_ = false; }

    /// This process has written what is in no index.
    [[nodiscard]] bool has_unindexed() const;
    /// This rank comes into the handle's next collective read, has brought what it had into its index, and waits for whom it must. The stamp up
    /// to which indexes are to be looked at anew; nothing: they say what they said before.
    [[nodiscard]] std::optional<container::Stamp> enter(bool all);

    void written() override;
    void indexed() override;
    void learned(container::Stamp last) override;

private:
    struct Head;
    struct Line;

    SharedReads(std::shared_ptr<Team> team, std::shared_ptr<container::Container> container, SharedMemory memory);
    [[nodiscard]] Head& head() const;
    [[nodiscard]] Line& line(int rank) const;
    /// Until that rank has come into this read, or, unless `all`, has nothing in no index.
    void wait_for(int rank, bool all);

    const std::shared_ptr<Team> team_;
    const std::shared_ptr<container::Container> container_;
    SharedMemory memory_;
    std::uint32_t reads_ = 0;  ///< collective ones that this rank has come into
    // Head::indexed and Head::stamp when indexes were last to be looked at anew; before the first read they have no such value.
    std::uint64_t seen_ = UINT64_MAX;
    container::Stamp stamp_ = 0;
    bool waits_for_all_ = false;
};

}  // namespace ioweir::engine
