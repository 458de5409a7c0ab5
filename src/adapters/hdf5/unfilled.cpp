#include "adapters/hdf5/unfilled.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ioweir::hdf5 {
namespace {

constexpr std::int64_t most_blocks = 1 << 16;  // of all ranks and datasets, that are compared
constexpr std::int64_t most_bytes = 4 << 20;   // of a dataset, that are filled at once
constexpr std::int64_t least_bytes = 4 << 10;  // of a dataset, that are worth it

std::optional<Size> address_of(const Library& library, Id object) {
    const Quiet quiet(library);
    const std::optional<ObjectPlace> place = place_of(library, object);
    return place ? std::optional(place->address) : std::nullopt;
}

/// Elements lie in the dataset as they are, not elsewhere.
bool is_plain(const Library& library, Id type) {
    if (library.H5Tdetect_class(type, class_vlen) != 0 || library.H5Tdetect_class(type, class_reference) != 0)
        return false;
    return library.H5Tdetect_class(type, class_string) == 0 ||
           (library.H5Tget_class(type) == class_string && library.H5Tis_variable_str(type) == 0);
}

/// Why what the program expects to be filled cannot be filled later; empty: it can.
std::string why_not_later(const Library& library, const NewDataset& dataset) {
    if (library.H5Oget_info2 == nullptr || library.H5Oopen_by_addr == nullptr)
        return "HDF5 " + library.version() + " does not tell where a dataset lies";
    if (library.thread_safe) return "several threads may be in this HDF5";
    if (!library.is_known()) return "HDF5 " + library.version() + " may have ways to write that are not seen";
    if (dataset.name.empty()) return "it has no name";
    if (!is_plain(library, dataset.type)) return "its elements lie elsewhere";
    // HDF5 reads an element, changes a member, and writes it back: the other members must have their values by then.
    if (library.H5Tdetect_class(dataset.type, class_compound) != 0)
        return "its elements have members, which may be written one by one";
    return "";
}

/// Lists of blocks and points leave out where H5Soffset_simple has moved the selection, its bounds do not, and nothing else
/// tells. Example: blocks from 0 on of a selection with bounds from 8 on are moved by 8. False: there are no bounds.
bool move_by_offset(const Library& library, Id space, std::size_t dimensions, std::size_t numbers,
                    std::vector<Size>& list) {
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    if (list.empty()) return true;
    if (library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) return false;
    for (std::size_t d = 0; d < dimensions; ++d) {
        Size least = list[d];
        for (std::size_t i = d; i < list.size(); i += numbers) least = std::min(least, list[i]);
        // Corners of a block are as many numbers apart as there are dimensions.
        for (std::size_t i = d; i < list.size(); i += dimensions) list[i] += first[d] - least;
    }
    return true;
}

/// The box that a selection of blocks fills; nothing: it has gaps. HDF5 lists each element of such a box as a block of its
/// own where the program has given counts and no blocks, as most do.
/// Example: H5Sselect_hyperslab with the counts 256 and 1024: 262,144 blocks, one box.
std::optional<Block> box_without_gaps(const Library& library, Id space, std::size_t dimensions) {
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    if (library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) return std::nullopt;
    Block box{Shape(dimensions), Shape(dimensions)};
    Shape lengths(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
        box.start[d] = static_cast<std::int64_t>(first[d]);
        box.stop[d] = static_cast<std::int64_t>(last[d]) + 1;
        lengths[d] = box.stop[d] - box.start[d];
    }
    if (volume(lengths) != library.H5Sget_select_npoints(space)) return std::nullopt;
    return box;
}

/// The blocks of a selection; nothing: they cannot be told, or are too many.
std::optional<std::vector<Block>> blocks_of(const Library& library, Id space, const Shape& dataset) {
    const auto dimensions = dataset.size();
    if (space == by_default) return std::vector<Block>{{Shape(dimensions), dataset}};
    const Quiet quiet(library);
    if (library.H5Iget_type(space) != kind_space) return std::nullopt;
    const int kind = library.H5Sget_select_type(space);
    if (kind == selects_all) return std::vector<Block>{{Shape(dimensions), dataset}};
    if (kind == selects_nothing) return std::vector<Block>{};
    if (kind != selects_blocks && kind != selects_points) return std::nullopt;
    const bool points = kind == selects_points;
    if (!points)
        if (auto box = box_without_gaps(library, space, dimensions)) return std::vector<Block>{std::move(*box)};
    const std::int64_t count =
        points ? library.H5Sget_select_elem_npoints(space) : library.H5Sget_select_hyper_nblocks(space);
    if (count < 0 || count > most_blocks) return std::nullopt;
    const std::size_t numbers = dimensions * (points ? 1 : 2);
    std::vector<Size> list(static_cast<std::size_t>(count) * numbers);
    const int code = count == 0 ? 0
                     : points   ? library.H5Sget_select_elem_pointlist(space, 0, static_cast<Size>(count), list.data())
                              : library.H5Sget_select_hyper_blocklist(space, 0, static_cast<Size>(count), list.data());
    if (code < 0 || !move_by_offset(library, space, dimensions, numbers, list)) return std::nullopt;
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < list.size(); i += numbers) {
        Block block{Shape(dimensions), Shape(dimensions)};
        for (std::size_t d = 0; d < dimensions; ++d) {
            block.start[d] = static_cast<std::int64_t>(list[i + d]);
            block.stop[d] = static_cast<std::int64_t>(list[i + numbers - dimensions + d]) + 1;
        }
        if (blocks.empty() || !merge(blocks.back(), block)) blocks.push_back(std::move(block));
    }
    return blocks;
}

/// Numbers of all ranks, one rank's after the other's.
std::vector<std::int64_t> of_all(const File& file, const std::vector<std::int64_t>& mine) {
    if (!file.parallel || file.ranks == 1) return mine;
    const auto ranks = static_cast<std::size_t>(file.ranks);
    const int count = static_cast<int>(mine.size());
    std::vector<int> counts(ranks);
    PMPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, file.comm);
    std::vector<int> places(ranks);
    int total = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        places[i] = total;
        total += counts[i];
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(total));
    PMPI_Allgatherv(mine.data(), count, MPI_INT64_T, all.data(), counts.data(), places.data(), MPI_INT64_T, file.comm);
    return all;
}

/// For each of `values`: the sum of all ranks'.
void sum_up(const File& file, std::vector<std::int64_t>& values) {
    if (file.parallel && file.ranks > 1)
        PMPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_SUM, file.comm);
}

/// Such as are filled at once.
std::vector<Block> pieces_of(const Block& block, std::int64_t element_bytes) {
    return cut(block, std::max<std::int64_t>(1, most_bytes / std::max<std::int64_t>(1, element_bytes)));
}

/// Writes the dataset's fill value to this rank's share of the pieces. True: it could.
bool fill(const File& file, Id dataset, const std::vector<Block>& pieces) {
    const Library& library = *file.library;
    const List list = List::of_dataset(library, dataset);
    const Id type = library.H5Dget_type(dataset);
    const Id space = library.H5Dget_space(dataset);
    const std::size_t bytes = type > 0 ? library.H5Tget_size(type) : 0;
    std::vector<unsigned char> value(bytes);
    bool good = list && space > 0 && bytes > 0 && library.H5Pget_fill_value(list.id(), type, value.data()) >= 0;
    std::vector<unsigned char> values;
    const std::size_t step = file.parallel ? static_cast<std::size_t>(file.ranks) : 1;
    const std::size_t first = file.parallel ? static_cast<std::size_t>(file.rank) : 0;
    for (std::size_t i = first; good && i < pieces.size(); i += step) {
        std::array<Size, most_dimensions> start{};
        std::array<Size, most_dimensions> count{};
        Size elements = 1;
        for (std::size_t d = 0; d < pieces[i].start.size(); ++d) {
            start[d] = static_cast<Size>(pieces[i].start[d]);
            count[d] = static_cast<Size>(pieces[i].stop[d] - pieces[i].start[d]);
            elements *= count[d];
        }
        while (values.size() < elements * bytes) values.insert(values.end(), value.begin(), value.end());
        const int dimensions = static_cast<int>(pieces[i].start.size());
        const Id memory = library.H5Screate_simple(dimensions, count.data(), nullptr);
        good = memory > 0 && library.H5Sselect_hyperslab(space, 0, start.data(), nullptr, count.data(), nullptr) >= 0 &&
               library.H5Dwrite(dataset, type, memory, space, by_default, values.data()) >= 0;
        if (memory > 0) library.H5Sclose(memory);
    }
    if (space > 0) library.H5Sclose(space);
    if (type > 0) library.H5Tclose(type);
    return good;
}

}  // namespace

Filling choose_filling(File& file, const NewDataset& dataset, Id list) {
    const Library& library = *file.library;
    int time = fill_never;
    int value = fill_undefined;
    if (library.H5Pget_fill_time(list, &time) < 0 || library.H5Pfill_value_defined(list, &value) < 0 ||
        time == fill_never || dataset.lengths.empty() || volume(dataset.lengths) * dataset.element_bytes < least_bytes)
        return Filling::as_program;
    const int layout = library.H5Pget_layout(list);
    if ((layout != layout_contiguous && layout != layout_chunked) || library.H5Pget_external_count(list) > 0)
        return Filling::as_program;
    // HDF5 fills where it is told to, or has a value; chunks with zeros, too, if there is none.
    const bool always = time == fill_at_allocation;
    const bool fills = always || value == fill_users || (value == fill_default && layout == layout_chunked);
    const bool expected = value != fill_undefined && (always || value == fill_users ||
                                                      (value == fill_default && dataset.layout == layout_chunked));
    if (!fills) return Filling::as_program;
    std::string why_not;
    if (!dataset.fixed)
        why_not = "it can grow";
    else if (library.H5Pget_nfilters(list) > 0)
        why_not = "it has filters";
    else if (!file.parallel && layout == layout_chunked)
        why_not = "its chunks come one by one";
    else if (expected)
        why_not = why_not_later(library, dataset);
    if (why_not.empty() && library.H5Pset_fill_time(list, fill_never) < 0)
        why_not = "HDF5 " + library.version() + " does not take it";
    if (why_not.empty()) return expected ? Filling::later : Filling::never;
    const std::string name = dataset.name.empty() ? "a dataset" : dataset.name;
    if (file.names("fill: filled when it is made: " + why_not))
        file.refuse("fill: " + name + " is filled when it is made: " + why_not);
    return Filling::as_program;
}

void keep_unfilled(const File& file, const NewDataset& dataset, Id list) {
    const Library& library = *file.library;
    int time = fill_never;
    int value = fill_users;
    // Chunks that ranks do not make together are filled in memory, before their only write.
    if (!file.parallel || dataset.layout != layout_contiguous || library.H5Pget_layout(list) != layout_chunked) return;
    if (library.H5Pget_fill_time(list, &time) < 0 || time != fill_if_set ||
        library.H5Pfill_value_defined(list, &value) < 0 || value == fill_users || library.H5Pget_nfilters(list) > 0)
        return;
    library.H5Pset_fill_time(list, fill_never);
}

void fill_now(File& file, Id dataset, const NewDataset& about) {
    const Quiet quiet(*file.library);
    const Block whole{Shape(about.lengths.size()), about.lengths};
    if (!fill(file, dataset, pieces_of(whole, about.element_bytes)))
        file.refuse("fill: " + about.name + " could not be filled");
    if (file.parallel && file.ranks > 1) PMPI_Barrier(file.comm);
}

void Unfilled::add(const Library& library, Id dataset, const NewDataset& about) {
    const std::optional<Size> address = address_of(library, dataset);
    datasets_.push_back({about.name, address.value_or(0), about.lengths, {}, !address});
}

Unfilled::Dataset* Unfilled::find(const Library& library, Id dataset) {
    const std::optional<Size> address = none() ? std::nullopt : address_of(library, dataset);
    if (!address) return nullptr;
    const auto found =
        std::find_if(datasets_.rbegin(), datasets_.rend(), [&](const Dataset& one) { return one.address == *address; });
    return found != datasets_.rend() ? &*found : nullptr;
}

void Unfilled::write(const Library& library, Id dataset, Id space) {
    Dataset* known = find(library, dataset);
    if (known == nullptr) return;
    const auto blocks = blocks_of(library, space, known->lengths);
    if (!blocks || std::ssize(known->written) > most_blocks) {
        known->unknown = true;
        return;
    }
    for (const Block& block : *blocks)
        if (known->written.empty() || !merge(known->written.back(), block)) known->written.push_back(block);
}

void Unfilled::write_chunk(const Library& library, Id dataset, const Size* place) {
    Dataset* known = find(library, dataset);
    if (known == nullptr) return;
    std::array<Size, most_dimensions> chunk{};
    const Quiet quiet(library);
    const List list = List::of_dataset(library, dataset);
    const int dimensions = list ? library.H5Pget_chunk(list.id(), most_dimensions, chunk.data()) : -1;
    if (dimensions != std::ssize(known->lengths) || place == nullptr) {
        known->unknown = true;
        return;
    }
    Block block;
    for (std::size_t d = 0; d < known->lengths.size(); ++d) {
        block.start.push_back(static_cast<std::int64_t>(place[d]));
        block.stop.push_back(std::min(known->lengths[d], static_cast<std::int64_t>(place[d] + chunk[d])));
    }
    known->written.push_back(std::move(block));
}

void Unfilled::read_alone(File& file, Id dataset, Id space) {
    Dataset* known = find(*file.library, dataset);
    if (known == nullptr) return;
    const auto wanted = blocks_of(*file.library, space, known->lengths);
    bool own = wanted.has_value();
    for (std::size_t i = 0; own && i < wanted->size(); ++i) {
        // What is wanted lacks nothing of mine, if a block of that size without mine has nothing.
        std::vector<Block> mine = known->written;
        Shape lengths;
        for (std::size_t d = 0; d < known->lengths.size(); ++d) {
            lengths.push_back((*wanted)[i].stop[d] - (*wanted)[i].start[d]);
            for (Block& block : mine) {
                block.start[d] -= (*wanted)[i].start[d];
                block.stop[d] -= (*wanted)[i].start[d];
            }
        }
        own = rest_of(lengths, std::move(mine)).empty();
    }
    if (own || file.host.note == nullptr || file.said_of_reads.exchange(true)) return;
    file.host.note(file.path.c_str(),
                   ("hdf5: fill: " + known->name +
                    " is read by a rank alone before all ranks have flushed or closed the file: what nobody has "
                    "written has no fill value yet")
                       .c_str());
}

std::vector<std::vector<Block>> Unfilled::missing(File& file) {
    // Of each dataset: may there be more than is known? Of all: how many blocks?
    std::vector<std::int64_t> sums;
    for (Dataset& one : datasets_) {
        merge_all(one.written);
        sums.push_back(one.unknown ? 1 : 0);
    }
    std::int64_t blocks = 0;
    for (const Dataset& one : datasets_) blocks += std::ssize(one.written);
    sums.push_back(blocks);
    sum_up(file, sums);
    const bool too_many = sums.back() > most_blocks;
    std::vector<std::int64_t> mine;
    for (std::size_t i = 0; i < datasets_.size() && !too_many; ++i)
        for (const Block& block : datasets_[i].written) {
            mine.push_back(static_cast<std::int64_t>(i));
            mine.insert(mine.end(), block.start.begin(), block.start.end());
            mine.insert(mine.end(), block.stop.begin(), block.stop.end());
        }
    const std::vector<std::int64_t> all = too_many ? mine : of_all(file, mine);
    std::vector<std::vector<Block>> written(datasets_.size());
    for (auto number = all.begin(); number != all.end();) {
        const auto i = static_cast<std::size_t>(*number++);
        const auto dimensions = std::ssize(datasets_[i].lengths);
        written[i].push_back({Shape(number, number + dimensions), Shape(number + dimensions, number + 2 * dimensions)});
        number += 2 * dimensions;
    }
    std::vector<std::vector<Block>> rest(datasets_.size());
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
        if (too_many || sums[i] > 0)
            file.refuse("fill: what nobody has written of " + datasets_[i].name + " has no fill value: " +
                        (too_many ? "too many pieces were written" : "not all that was written is known"));
        else
            rest[i] = rest_of(datasets_[i].lengths, std::move(written[i]));
    }
    return rest;
}

void Unfilled::settle(File& file, Id place) {
    if (none()) return;
    const Library& library = *file.library;
    const Quiet quiet(library);
    const std::vector<std::vector<Block>> rest = missing(file);
    bool filled = false;
    for (std::size_t i = 0; i < datasets_.size(); ++i) {
        if (rest[i].empty()) continue;
        const Id dataset = library.H5Oopen_by_addr(place, datasets_[i].address);
        const Id type = dataset > 0 ? library.H5Dget_type(dataset) : -1;
        const auto bytes = static_cast<std::int64_t>(type > 0 ? library.H5Tget_size(type) : 1);
        if (type > 0) library.H5Tclose(type);
        std::vector<Block> pieces;
        for (const Block& block : rest[i])
            for (Block& piece : pieces_of(block, bytes)) pieces.push_back(std::move(piece));
        if (dataset <= 0 || !fill(file, dataset, pieces))
            file.refuse("fill: " + datasets_[i].name + " could not be filled where nobody has written");
        if (dataset > 0) library.H5Dclose(dataset);
        if (file.names("fill: filled where nobody had written"))
            file.note("fill: " + datasets_[i].name + " was filled where nobody had written");
        filled = true;
    }
    datasets_.clear();
    if (filled && file.parallel && file.ranks > 1) PMPI_Barrier(file.comm);
}

}  // namespace ioweir::hdf5
