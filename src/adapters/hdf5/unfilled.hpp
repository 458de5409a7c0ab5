// Datasets that HDF5 would have filled with the program's fill value when they were made: ioweir keeps it from that,
// remembers what is written, and at the next call that all ranks make gives the value to what nobody has written.
// What does not live here: which elements those are (coverage.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/hdf5/coverage.hpp"
#include "adapters/hdf5/file.hpp"

namespace ioweir::hdf5 {

/// What a program's new dataset is like, as far as it decides about filling.
struct NewDataset {
    std::string name;  ///< empty: it has none
    Shape lengths;     ///< empty: not a simple space, or one without elements
    bool fixed = true;
    int layout = 0;  ///< as the program wants it
    Id type = 0;
    std::int64_t element_bytes = 0;
};

/// What becomes of a dataset's filling.
enum class Filling : std::uint8_t {
    as_program,  ///< HDF5 does what it does
    never,       ///< what nobody writes is not defined anyway
    later,       ///< here, where nobody has written
};

/// Decides, and says so in the creation list, in which the layout is what it will be.
[[nodiscard]] Filling choose_filling(File& file, const NewDataset& dataset, Id list);

/// A contiguous dataset that HDF5 would not have filled is not filled with zeros because a rule has given it chunks: what
/// nobody writes is what stands in the file, as before, and no byte is written twice. `list` as above.
void keep_unfilled(const File& file, const NewDataset& dataset, Id list);

/// Gives the fill value to all of a new dataset, as HDF5 would have done. Collective.
void fill_now(File& file, Id dataset, const NewDataset& about);

/// Those of a file. HDF5 libraries that several threads may be in have none, so that nothing here is guarded.
class Unfilled {
public:
    [[nodiscard]] bool none() const { return datasets_.empty(); }
    /// The program has made the dataset. All ranks make the same in the same order.
    void add(const Library& library, Id dataset, const NewDataset& about);
    /// The program has written to a dataset, maybe one of these; `space` as in H5Dwrite.
    void write(const Library& library, Id dataset, Id space);
    /// A chunk that begins there.
    void write_chunk(const Library& library, Id dataset, const Size* place);
    /// Of a read without the others: has this rank written all of it? Otherwise it is said once what that means.
    void read_alone(File& file, Id dataset, Id space);
    /// Gives the fill value to what nobody has written so far. `place`: an id in the file. Collective; nothing is left.
    void settle(File& file, Id place);

private:
    struct Dataset {
        std::string name;
        Size address = 0;  ///< of its object header
        Shape lengths;
        std::vector<Block> written;  ///< by this rank
        bool unknown = false;        ///< something else may have been written
    };

    Dataset* find(const Library& library, Id dataset);
    /// What each dataset lacks; none for a dataset of which that is not known, which is said.
    std::vector<std::vector<Block>> missing(File& file);

    std::vector<Dataset> datasets_;
};

}  // namespace ioweir::hdf5
