// What tests of faults share: a file in which every rank has pieces and nobody the gaps between them, written or read by one function of
// each family, and what every rank has to say about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {

int class_of(int code);

/// Each rank has pieces of `piece_bytes` in turn, with a gap after every round of them that belongs to nobody.
inline constexpr int piece_bytes = 10, gap_bytes = 7, pieces_a_call = 3, calls = 5;
inline constexpr int bytes_a_call = piece_bytes * pieces_a_call, bytes_a_rank = bytes_a_call * calls;
inline constexpr int writes_a_rank = pieces_a_call * calls;

/// Of a rank's byte in the file.
MPI_Offset place_of(int rank, int byte);
/// Never '.' or '?', which stand for bytes that nobody writes or reads.
char value_of(int rank, int byte);

extern int handler_calls;  ///< of the file's error handler, on this rank

class FaultTest : public EngineTest {
protected:
    struct Answer {
        int error_class = MPI_SUCCESS;
        int bytes = bytes_a_call;
    };

    /// A new file, of '.' or of every rank's values, open with the engine and with this rank's view. `in_groups`: the engine writes what
    /// is in it before, and the name's rule makes a container of it.
    void open_file(const std::string& name = "fault.engine", bool filled = false, bool in_groups = false);
    /// The file's bytes, on every rank; of a container those of the logical file, and nothing where it cannot be read.
    [[nodiscard]] std::string file_bytes() const;
    void remove_file() const;
    /// This rank's bytes, by another function in each call: at, individual pointer, non-blocking, split, independent.
    std::vector<Answer> write_all_calls();
    /// The same for reading; `back` is what came, '?' where nothing did.
    std::vector<Answer> read_all_calls(std::string& back);

    /// `answers` of all ranks, one after the other, on every rank.
    static std::vector<Answer> gathered(const std::vector<Answer>& mine);
    /// What a call did not move is as it was; everything else is there, and nothing else is changed.
    void expect_file(const std::vector<Answer>& all) const;
    /// The bytes of calls that say they moved them are there; those of the others are there or as they were; nothing else changes.
    void expect_nothing_else(const std::vector<Answer>& all) const;
    /// How many bytes of each rank's calls are still as they were before. What is neither so nor as it was written is a failure.
    [[nodiscard]] std::vector<std::vector<int>> missing_bytes() const;
    /// The file as it is with every rank's values.
    [[nodiscard]] static std::string whole_file();

    MPI_File file_ = MPI_FILE_NULL;
    std::string path_;
};

}  // namespace ioweir
