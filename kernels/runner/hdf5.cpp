#include "kernels/runner/hdf5.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/checked.hpp"
#include "kernels/runner/array_parts.hpp"
#include "kernels/runner/hdf5_library.hpp"

namespace ioweir::kernels {

namespace {

using hdf5::functions;
using hdf5::Id;
using hdf5::must;
using hdf5::must_id;
using hdf5::Size;

/// A property list; closed with its object.
class List {
public:
    explicit List(const Id* kind) : id_(must_id(functions().create_list(*kind), "H5Pcreate")) {}
    ~List() { functions().close_list(id_); }
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    [[nodiscard]] Id id() const { return id_; }

private:
    Id id_;
};

/// Chunks of an array in all, where each is as chunk_lengths says.
std::int64_t count_chunks(const ArrayFile& file, std::size_t array, const std::vector<std::int64_t>& chunk) {
    std::int64_t chunks = 1;
    for (std::size_t d = 0; d < chunk.size(); ++d)
        chunks *= ceil_divide(file.dimensions[file.arrays[array].dimensions[d]].length, chunk[d]);
    return chunks;
}

void set_access(const Job& job, MPI_Info info, Id access) {
    const Hdf5Settings& settings = job.hdf5;
    must(functions().set_mpio(access, MPI_COMM_WORLD, info), "H5Pset_fapl_mpio");
    if (settings.alignment > 0)
        must(functions().set_alignment(access, static_cast<Size>(settings.threshold),
                                       static_cast<Size>(settings.alignment)),
             "H5Pset_alignment");
    if (settings.meta_block > 0)
        must(functions().set_meta_block(access, static_cast<Size>(settings.meta_block)), "H5Pset_meta_block_size");
    if (settings.collective_metadata) {
        must(functions().set_collective_metadata_writes(access, true), "H5Pset_coll_metadata_write");
        must(functions().set_collective_metadata_reads(access, true), "H5Pset_all_coll_metadata_ops");
    }
    if (settings.new_format)
        must(functions().set_versions(access, hdf5::version_1_10, hdf5::version_1_10), "H5Pset_libver_bounds");
    if (!settings.evictions) {  // figure 5 of Howison et al. 2010
        hdf5::CacheConfig config;
        must(functions().get_cache(access, &config), "H5Pget_mdc_config");
        config.evictions_enabled = false;
        config.incr_mode = config.flash_incr_mode = config.decr_mode = 0;
        must(functions().set_cache(access, &config), "H5Pset_mdc_config");
    }
}

void set_creation(const Job& job, const ArrayFile& arrays, Id creation) {
    if (!job.hdf5.chunked || !job.hdf5.large_index) return;
    std::int64_t most = 1;
    for (std::size_t array = 0; array < arrays.arrays.size(); ++array)
        most = std::max(most, count_chunks(arrays, array, chunk_lengths(*job.kernel, array)));
    const auto k = static_cast<unsigned>(std::min<std::int64_t>(ceil_divide(most, 2), hdf5::most_index_k));
    must(functions().set_index_k(creation, k), "H5Pset_istore_k");
}

/// The datasets of an open file, each opened when it is used first and closed when it was used last.
class Datasets {
public:
    Datasets(const Job& job, const ArrayFile& arrays, Id file, const std::vector<std::vector<Slab>>& calls)
        : job_(job), arrays_(arrays), file_(file), ids_(arrays.arrays.size(), -1), last_(arrays.arrays.size(), 0) {
        for (std::size_t call = 0; call < calls.size(); ++call) last_[calls[call].front().array] = call;
    }
    Id create(std::size_t array) {
        Id& id = ids_[array];
        if (id >= 0) return id;
        const Array& one = arrays_.arrays[array];
        std::vector<Size> lengths;
        for (const std::size_t d : one.dimensions) lengths.push_back(static_cast<Size>(arrays_.dimensions[d].length));
        const auto dimensions = static_cast<int>(lengths.size());
        const List links(functions().link_creation), creation(functions().dataset_creation);
        must(functions().set_intermediate_groups(links.id(), 1), "H5Pset_create_intermediate_group");
        if (!job_.hdf5.fill) must(functions().set_fill_time(creation.id(), hdf5::fill_never), "H5Pset_fill_time");
        if (job_.hdf5.chunked && !one.by_first_rank) {
            const auto chunk = chunk_lengths(*job_.kernel, array);
            const std::vector<Size> sizes(chunk.begin(), chunk.end());
            must(functions().set_chunk(creation.id(), dimensions, sizes.data()), "H5Pset_chunk");
        }
        const Id space = must_id(functions().create_space(dimensions, lengths.data(), nullptr), "H5Screate_simple");
        id = must_id(functions().create_dataset(file_, one.name.c_str(), hdf5::type_of(one.type), space, links.id(),
                                                creation.id(), hdf5::default_list),
                     "H5Dcreate2");
        must(functions().close_space(space), "H5Sclose");
        return id;
    }
    Id open(std::size_t array) {
        Id& id = ids_[array];
        if (id < 0)
            id = must_id(functions().open_dataset(file_, arrays_.arrays[array].name.c_str(), hdf5::default_list),
                         "H5Dopen2");
        return id;
    }
    void close_after(std::size_t call, std::size_t array) {
        if (last_[array] != call) return;
        must(functions().close_dataset(ids_[array]), "H5Dclose");
        ids_[array] = -1;
    }

private:
    const Job& job_;
    const ArrayFile& arrays_;
    Id file_;
    std::vector<Id> ids_;
    std::vector<std::size_t> last_;  ///< call of each array
};

/// Where a part lies, in the file and in memory, and the memory that HDF5 is given for it.
class Selection {
public:
    /// Not for an ArrayPart that moves: packed memory is its own.
    Selection(const ArrayFile& arrays, ArrayPart& part, bool guarded) : part_(part) {
        std::vector<Size> lengths;
        for (const std::size_t d : arrays.arrays[part.array()].dimensions)
            lengths.push_back(static_cast<Size>(arrays.dimensions[d].length));
        if (guarded) line_ = static_cast<Size>(part.slabs().front().count.back());
        file = must_id(functions().create_space(static_cast<int>(lengths.size()), lengths.data(), nullptr),
                       "H5Screate_simple");
        select_memory();
        bool any = false;
        for (const Slab& slab : part.slabs()) {
            if (std::any_of(slab.count.begin(), slab.count.end(), [](std::int64_t n) { return n == 0; })) continue;
            const std::vector<Size> start(slab.start.begin(), slab.start.end());
            const std::vector<Size> count(slab.count.begin(), slab.count.end());
            must(functions().select_block(file, any ? hdf5::select_or : hdf5::select_set, start.data(), nullptr,
                                          count.data(), nullptr),
                 "H5Sselect_hyperslab");
            any = true;
        }
        if (any) return;
        must(functions().select_none(file), "H5Sselect_none");
        must(functions().select_none(memory), "H5Sselect_none");
    }
    ~Selection() {
        functions().close_space(file);
        functions().close_space(memory);
    }
    Selection(const Selection&) = delete;
    Selection& operator=(const Selection&) = delete;

    /// What H5Dwrite and H5Dread take; with guard cells holding what the part holds.
    [[nodiscard]] char* data() { return line_ > 0 ? guarded_.data() : part_.data.data(); }
    /// What was read goes to the part. False: a guard cell was touched.
    [[nodiscard]] bool take() {
        bool untouched = true;
        for_each_line([&](char* packed, char* guarded, std::size_t bytes, std::size_t guard) {
            std::memcpy(packed, guarded, bytes);
            for (std::size_t i = 0; i < guard; ++i)
                untouched = untouched && guarded[-1 - static_cast<std::ptrdiff_t>(i)] == guard_byte &&
                            guarded[bytes + i] == guard_byte;
        });
        return untouched;
    }

    Id file = -1, memory = -1;

private:
    static constexpr char guard_byte = 'g';

    void select_memory() {
        const auto elements = static_cast<Size>(part_.elements());
        if (line_ == 0 || elements == 0) {
            line_ = 0;
            const Size length = std::max<Size>(elements, 1);
            memory = must_id(functions().create_space(1, &length, nullptr), "H5Screate_simple");
            return;
        }
        constexpr auto guard = static_cast<Size>(guard_cells);
        const Size lines = elements / line_;
        const Size sizes[] = {lines, line_ + 2 * guard}, start[] = {0, guard}, count[] = {lines, line_};
        memory = must_id(functions().create_space(2, sizes, nullptr), "H5Screate_simple");
        must(functions().select_block(memory, hdf5::select_set, start, nullptr, count, nullptr), "H5Sselect_hyperslab");
        guarded_.assign(
            static_cast<std::size_t>(sizes[0] * sizes[1]) * static_cast<std::size_t>(bytes_of(part_.type())),
            guard_byte);
        for_each_line([](const char* packed, char* guarded, std::size_t bytes, std::size_t) {
            std::memcpy(guarded, packed, bytes);
        });
    }
    template <typename Visit>
    void for_each_line(Visit visit) {
        if (line_ == 0) return;
        const auto element = static_cast<std::size_t>(bytes_of(part_.type()));
        const std::size_t bytes = line_ * element, guard = static_cast<std::size_t>(guard_cells) * element;
        char* guarded = guarded_.data() + guard;
        for (std::size_t at = 0; at < part_.data.size(); at += bytes, guarded += bytes + 2 * guard)
            visit(part_.data.data() + at, guarded, bytes, guard);
    }

    ArrayPart& part_;
    Size line_ = 0;  ///< elements that lie together in memory; 0: all
    std::vector<char> guarded_;
};

void write_arrays(const Job& job, const ArrayFile& arrays, MPI_Info info, Times& times) {
    const List creation(functions().file_creation), access(functions().file_access),
        transfer(functions().dataset_transfer);
    set_access(job, info, access.id());
    set_creation(job, arrays, creation.id());
    must(functions().set_transfer(transfer.id(),
                                  job.hdf5.collective ? hdf5::collective_transfer : hdf5::independent_transfer),
         "H5Pset_dxpl_mpio");
    Stopwatch watch;
    Id file = -1;
    watch.run([&] {
        file =
            must_id(functions().create_file(job.path.c_str(), hdf5::new_file, creation.id(), access.id()), "H5Fcreate");
    });
    const auto calls = slabs_of_calls(job, arrays);
    Datasets datasets(job, arrays, file, calls);
    for (std::size_t call = 0; call < calls.size(); ++call) {
        ArrayPart part(arrays, calls[call], job.content.salt);
        part.fill();
        Selection selection(arrays, part, job.hdf5.guarded);
        const bool alone = arrays.arrays[part.array()].by_first_rank;
        watch.run([&] {
            const Id dataset = datasets.create(part.array());
            if (!alone || job.rank == 0)
                must(functions().write(dataset, hdf5::type_of(part.type()), selection.memory, selection.file,
                                       alone ? hdf5::default_list : transfer.id(), selection.data()),
                     "H5Dwrite");
            datasets.close_after(call, part.array());
        });
    }
    watch.run([&] {
        if (job.sync) must(functions().flush(file, hdf5::whole_scope), "H5Fflush");
        must(functions().close_file(file), "H5Fclose");
    });
    times.write_s = watch.slowest();
    times.write_span_s = watch.span();
}

/// Reads the parts of all calls and compares them. `access`: how the file is opened; `transfer`: how its datasets are read.
bool read_arrays(const Job& job, const ArrayFile& arrays, Id access, Id transfer, double& seconds) {
    bool right = true;
    Stopwatch watch;
    Id file = -1;
    watch.run([&] { file = must_id(functions().open_file(job.path.c_str(), hdf5::read_only, access), "H5Fopen"); });
    const auto calls = slabs_of_calls(job, arrays);
    Datasets datasets(job, arrays, file, calls);
    for (std::size_t call = 0; call < calls.size(); ++call) {
        ArrayPart part(arrays, calls[call], job.content.salt);
        Selection selection(arrays, part, job.hdf5.guarded);
        const bool alone = arrays.arrays[part.array()].by_first_rank && job.written_by == 0;
        watch.run([&] {
            const Id dataset = datasets.open(part.array());
            if (!alone || job.rank == 0)
                must(functions().read(dataset, hdf5::type_of(part.type()), selection.memory, selection.file,
                                      alone ? hdf5::default_list : transfer, selection.data()),
                     "H5Dread");
            datasets.close_after(call, part.array());
        });
        right = selection.take() && right;
        if (!alone || job.rank == 0) right = part.is_right() && right;
    }
    watch.run([&] { must(functions().close_file(file), "H5Fclose"); });
    seconds = watch.slowest();
    return right;
}

}  // namespace

std::vector<std::int64_t> chunk_lengths(const Kernel& kernel, std::size_t array) {
    const std::int64_t calls = kernel.calls(), all = calls + kernel.calls_beside();
    std::vector<std::int64_t> lengths;
    for (std::int64_t call = 0; call < all && lengths.empty(); ++call) {
        if (kernel.slab(0, call).array != array) continue;
        lengths.assign(kernel.slab(0, call).count.size(), 1);
        for (int rank = 0; rank < kernel.ranks(); ++rank) {
            for (const Slab& slab : kernel.slabs(rank, call)) {
                for (std::size_t d = 0; d < lengths.size(); ++d) lengths[d] = std::max(lengths[d], slab.count[d]);
            }
        }
    }
    return lengths;
}

Times run_hdf5(Job& job) {
    const ArrayFile arrays = job.kernel->arrays();
    MPI_Info info;
    MPI_Info_create(&info);
    for (const auto& [name, value] : job.hints) MPI_Info_set(info, name.c_str(), value.c_str());
    Times times;
    if (job.written_by == 0) write_arrays(job, arrays, info, times);
    if (job.cold) forget_pages(job.rank);
    {
        const List access(functions().file_access), transfer(functions().dataset_transfer);
        set_access(job, info, access.id());
        must(functions().set_transfer(transfer.id(),
                                      job.hdf5.collective ? hdf5::collective_transfer : hdf5::independent_transfer),
             "H5Pset_dxpl_mpio");
        times.right = read_arrays(job, arrays, access.id(), transfer.id(), times.read_s);
    }
    if (job.verify) {
        Job reader = job;
        reader.written_by = job.written_by > 0 ? job.written_by : job.ranks;  // even parts
        double seconds = 0;
        times.file_right = read_arrays(reader, arrays, hdf5::default_list, hdf5::default_list, seconds);
    }
    MPI_Info_free(&info);
    return times;
}

}  // namespace ioweir::kernels
