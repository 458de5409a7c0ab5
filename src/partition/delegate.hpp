// The delegate's side of rbIO: takes the blocks of its workers, and writes them with one large call for a set, or several where its memory is less.
// Source: Liu et al., section 2.2 (a writer for a fixed group of workers) and 3.4 (modes 0, 1 and 2).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/block_memory.hpp"
#include "partition/hand_over.hpp"
#include "partition/passage.hpp"
#include "partition/reserve.hpp"
#include "partition/set_file.hpp"
#include "partition/wire.hpp"

namespace ioweir::partition {

/// What a worker tells of a set that it begins.
struct SetText {
    Wanted wanted;  ///< parts: of the worker; files: at least 1
    Options options;
    Hints hints;  ///< for the MPI library; no line ends in them
};
[[nodiscard]] std::string to_text(const SetText& set);
[[nodiscard]] SetText parse_set(const std::string& text);

class Delegate {
public:
    /// `workers`: ranks of this one's; `delegates`: all delegates; `passage`: to the first worker, if that is of this
    /// process. All must outlive this. `memory_bytes`: for blocks, at most. `longest_message`: of any worker.
    /// Throws std::bad_alloc.
    Delegate(const Channels& channels, std::vector<int> workers, MPI_Comm delegates, Passage* passage,
             std::int64_t memory_bytes, std::int64_t longest_message);
    /// Until all workers have left. Collective over the delegates.
    void serve();

private:
    struct Block {
        std::int64_t field = 0, part = 0;  ///< part: of this delegate
        Buffer memory;
        std::int64_t begin = 0;  ///< where it begins there: behind a Wire, if it came in a message
        std::int64_t there = 0;  ///< of memory.bytes
        [[nodiscard]] bool is_whole() const { return there == memory.bytes; }
        [[nodiscard]] MemoryPiece piece() const { return {memory.data.get() + begin, memory.bytes - begin}; }
    };
    /// One set of one worker.
    struct Share {
        bool begun = false;
        std::int64_t parts = 0;
        std::int64_t blocks = 0;         ///< that have come, written or not
        std::int64_t promised = -1;      ///< how many there will be
        std::optional<Failure> failure;  ///< the worker gives up
        std::deque<Block> blocks_here;   ///< in the order in which they came; the last one may not be whole
        bool drops = false;              ///< the last one that came: there was no memory for it
    };
    struct Set {
        std::optional<SetText> text;
        std::vector<Share> shares;  ///< of each worker
        std::unique_ptr<SetFile> file;
        std::optional<Failure> failure;  ///< there is no file because of it
        std::int64_t regions = 0;        ///< written before the end
        bool lacks_memory = false;       ///< for small things: blocks are dropped, and it fails
    };

    /// What one worker has, if there is something that there is memory for.
    [[nodiscard]] bool take_from(std::size_t worker);
    [[nodiscard]] bool take_message(std::size_t worker);
    [[nodiscard]] bool take_parcel();
    /// Nothing of the workers' is taken meanwhile.
    void rest(exchange::Patience& patience);
    /// `message`: that owns `data`, or empty, where it lies in sink_.
    void take(std::size_t worker, const char* data, Buffer message);
    /// All but blocks. `text`: behind the Wire.
    void take_word(std::size_t worker, const Wire& wire, const char* text);
    void take_block(std::size_t worker, const Wire& wire, Buffer message);
    void take_more(std::size_t worker, const Wire& wire, const char* bytes);
    void keep(std::size_t worker, const Wire& wire, Block block);
    /// A block that there is no memory for: its set fails, and its worker goes on.
    void drop(std::size_t worker, const Wire& wire);
    /// Writes what it can, so that `bytes` more fit. False: they do not, and nothing can be written yet.
    [[nodiscard]] bool make_room(std::int64_t bytes);
    void go_on();
    /// Where the reserve is spent: lets go of memory until it is there again, of blocks in the end.
    void recover();
    /// All that are here; the set fails.
    void drop_blocks(Set& set);
    /// Of all that is kept and made for a set besides its blocks, more rather than less.
    [[nodiscard]] std::int64_t small_bytes(const Set& set) const;
    void create(Set& set);
    [[nodiscard]] Set& set_of(std::int64_t number);
    [[nodiscard]] bool has_begun(const Set& set) const;
    [[nodiscard]] bool is_whole(const Set& set) const;
    /// Everything of the set that is here and whole, in the order of fields and parts.
    [[nodiscard]] std::vector<Block> collect(Set& set);
    void write_some(Set& set);
    void finish(std::int64_t number);
    void tell(std::int64_t number, const std::optional<Failure>& failure);
    [[nodiscard]] Buffer memory(std::int64_t bytes);
    /// The same, or nothing where the system has no more, though everything that can be written was.
    [[nodiscard]] Buffer memory_or_none(std::int64_t bytes);
    /// Of a block that is written: for the next one of about its size.
    void give_back(Block& block);

    Reserve reserve_;
    Channels channels_;
    MPI_Comm delegates_;
    Passage* const passage_;
    BlockMemory own_memory_;
    BlockMemory& memory_;  ///< also the passage's
    std::vector<int> workers_;
    std::int64_t most_bytes_, held_bytes_ = 0;
    std::vector<bool> left_;
    std::map<std::int64_t, Set> sets_;
    std::int64_t next_ = 0;         ///< the set that is created or finished next
    std::unique_ptr<char[]> sink_;  ///< as long as the longest message: what is not kept is taken into it
    exchange::Letters told_;
};

}  // namespace ioweir::partition
