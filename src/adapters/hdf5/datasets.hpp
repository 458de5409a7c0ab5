// New datasets: their chunks and their fill time, as a rule wishes or as earlier ones were written.
// What does not live here: how shapes follow from what ranks write (decomposition.hpp).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "adapters/hdf5/decomposition.hpp"
#include "adapters/hdf5/file.hpp"

namespace ioweir::hdf5 {

/// Where the arguments of H5Dcreate1, H5Dcreate2 (H5Dcreate_async) and H5Dcreate_anon are.
struct CreateForm {
    int name = -1;  ///< -1: the dataset has none
    int type = 0;
    int space = 0;
    int list = 0;
};

/// What the process has learned about datasets of one shape and one size of elements; all ranks have the same shapes.
/// Thread safe.
class Lessons {
public:
    using Key = std::pair<Shape, std::int64_t>;
    struct Lesson {
        Box first;  ///< what this rank has written first to the first such dataset
        bool settled = false;
        Learned learned;
    };
    /// What is known of datasets like this one; nothing: it is the first.
    [[nodiscard]] std::optional<Lesson> find(const Key& key) const;
    void begin(const Key& key);
    /// What this rank has written, if it is the first that is told.
    void tell(const Key& key, const Box& first);
    void settle(const Key& key, const Learned& learned);
    [[nodiscard]] std::int64_t most_chunks() const;
    void count_chunks(std::int64_t chunks);

private:
    mutable std::mutex mutex_;  // never held in a call of a library
    std::map<Key, Lesson> lessons_;
    std::int64_t most_chunks_ = 0;
};

/// Makes a dataset with the program's list changed. `watched`: the key of a lesson that is to be learned from its first write. Collective.
[[nodiscard]] Word create_dataset(File& file, Lessons& lessons, const CreateForm& form, const Call& call,
                                  std::optional<Lessons::Key>& watched);

/// What a rank writes: `space` is the program's file space, H5S_ALL for the whole dataset.
[[nodiscard]] Box box_of(const Library& library, Id space, const Shape& dataset);

}  // namespace ioweir::hdf5
