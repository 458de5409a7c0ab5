// What a rule changes in the property lists of a file: access (alignment, metadata, buffers) and creation (index, pages).
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "adapters/hdf5/file.hpp"
#include "base/size_text.hpp"

namespace ioweir::hdf5 {
namespace {

/// An access list that is being changed.
struct Change {
    File& file;
    const Library& library;
    Id list;
    Words& applied;
    Undo* undo;  ///< null: the list is a copy
};

/// One setting; says that it was made, or that the library did not take it.
bool say(File& file, Words& applied, const std::string& what, int code) {
    if (code >= 0)
        applied.push_back(what);
    else
        file.refuse(what + ": HDF5 " + file.library->version() + " does not take it");
    return code >= 0;
}

/// The same, where `get` reads what the list has and `set` gives it a value of that kind.
template <typename Value, typename Get, typename Set>
bool set(const Change& change, const std::string& what, Get get, Set set, const Value& wanted) {
    Value before{};
    if (get(change.list, before) < 0)
        change.file.refuse(what + ": HDF5 " + change.library.version() + " does not tell what the program has");
    else if (const int code = set(change.list, wanted); code < 0)
        change.file.refuse(what + ": HDF5 " + change.library.version() + " does not take it");
    else {
        if (change.undo != nullptr) change.undo->add([list = change.list, set, before] { set(list, before); });
        change.applied.push_back(what);
        return true;
    }
    return false;
}

/// A setting that is one value.
template <typename Value>
bool set_one(const Change& change, const std::string& what, int (*get)(Id, Value*), int (*set_value)(Id, Value),
             Value wanted) {
    return set(
        change, what, [get](Id list, Value& value) { return get(list, &value); },
        [set_value](Id list, const Value& value) { return set_value(list, value); }, wanted);
}

std::int64_t alignment_of(const File& file) {
    const policy::Hdf5Options& wish = file.wish();
    if (!wish.alignment_by_layout) return wish.alignment;
    if (file.rule->strategy.stripe.size_bytes > 0) return file.rule->strategy.stripe.size_bytes;
    return file.agreed(file.rank == 0 && file.host.stripe_of != nullptr ? file.host.stripe_of(file.path.c_str()) : 0);
}

/// HDF5 makes no file whose user block is not a multiple of its alignment, or of its pages (H5F__super_init).
bool fits(File& file, const std::string& key, std::int64_t unit, Size user_block) {
    const bool fits = user_block % static_cast<Size>(unit) == 0;
    if (!fits)
        file.refuse(key + ": the program's user block of " + exact_size_text(static_cast<std::int64_t>(user_block)) +
                    " is no multiple of " + exact_size_text(unit));
    return fits;
}

void align(const Change& change, Size user_block) {
    File& file = change.file;
    const std::int64_t alignment = alignment_of(file);
    if (alignment <= 0) {
        if (file.wish().alignment_by_layout)
            file.refuse("alignment = \"auto\": the file system tells no size of blocks");
        return;
    }
    if (!fits(file, "alignment", alignment, user_block)) return;
    const std::int64_t threshold =
        file.wish().threshold > 0 ? file.wish().threshold : std::max<std::int64_t>(1, alignment / 2);
    using Pair = std::pair<Size, Size>;
    set(
        change, "alignment " + exact_size_text(alignment) + " from " + exact_size_text(threshold),
        [get = change.library.H5Pget_alignment](Id list, Pair& pair) { return get(list, &pair.first, &pair.second); },
        [put = change.library.H5Pset_alignment](Id list, const Pair& pair) {
            return put(list, pair.first, pair.second);
        },
        Pair{threshold, alignment});
}

/// The structure is passed without a length: is it the one that is meant here?
bool is_known(const CacheConfig& config) {
    return config.version == 1 && config.trace_file_name[0] == '\0' && config.initial_size >= 1024 &&
           config.initial_size <= config.max_size && config.min_size <= config.max_size &&
           config.max_size <= std::size_t{1} << 32 && config.min_clean_fraction >= 0 &&
           config.min_clean_fraction <= 1 &&
           (config.metadata_write_strategy == 0 || config.metadata_write_strategy == 1);
}

/// The structure says which version of it is wanted.
int read_config(int (*get)(Id, CacheConfig*), Id list, CacheConfig& config) {
    config.version = 1;
    return get(list, &config);
}

/// H5C_incr_off and its like are 0.
void stop_resizing(CacheConfig& config) {
    config.incr_mode = 0;
    config.flash_incr_mode = 0;
    config.decr_mode = 0;
}

void hold_metadata(const Change& change) {
    File& file = change.file;
    const policy::Hdf5Options& wish = file.wish();
    CacheConfig config{};
    if (file.library->H5Pget_mdc_config(change.list, &config) < 0 || !is_known(config)) {
        file.refuse("hold_metadata: the metadata cache of HDF5 " + file.library->version() + " is not understood");
        return;
    }
    stop_resizing(config);
    std::string what = "metadata held until flush or close";
    if (wish.hold_all_metadata) {
        config.evictions_enabled = false;  // figure 5 of the paper
    } else {
        // In parallel, metadata are written at points where all ranks meet, each time that so much has become dirty; and then as much as
        // is missing to the share of the cache that has to be clean or free. With as much for both, the cache never outgrows the bound.
        const auto bound = static_cast<std::size_t>(wish.hold_metadata);
        constexpr std::size_t most_between = 32 << 20;  // H5AC__MAX_DIRTY_BYTES_THRESHOLD
        config.set_initial_size = true;
        config.initial_size = config.max_size = bound;
        config.min_size = std::min(config.min_size, bound);
        config.min_clean_fraction = 0.25;
        config.dirty_bytes_threshold = std::min(most_between, bound / 4);
        what += " up to " + exact_size_text(wish.hold_metadata);
    }
    const bool holds = set(
        change, what,
        [get = change.library.H5Pget_mdc_config](Id list, CacheConfig& to) { return read_config(get, list, to); },
        [put = change.library.H5Pset_mdc_config](Id list, const CacheConfig& from) { return put(list, &from); },
        config);
    if (holds) file.holds = true;
}

void make_collective(const Change& change) {
    File& file = change.file;
    const policy::Hdf5Collective wished = file.wish().collective_metadata;
    if (wished == policy::Hdf5Collective::as_program) return;
    if (wished == policy::Hdf5Collective::writes && !file.writable) return;
    const Library& library = *file.library;
    if (!file.parallel || library.H5Pset_coll_metadata_write == nullptr ||
        library.H5Pset_all_coll_metadata_ops == nullptr || library.H5Pget_coll_metadata_write == nullptr ||
        library.H5Pget_all_coll_metadata_ops == nullptr) {
        file.refuse("collective_metadata: the file is not opened through MPI-IO");
        return;
    }
    if (file.writable)
        set_one(change, "collective metadata writes", library.H5Pget_coll_metadata_write,
                library.H5Pset_coll_metadata_write, true);
    if (wished == policy::Hdf5Collective::all)
        set_one(change, "collective metadata reads", library.H5Pget_all_coll_metadata_ops,
                library.H5Pset_all_coll_metadata_ops, true);
}

/// H5F_libver_t from 1.10 on: the place here and 1; a library knows those up to its own.
constexpr std::array<std::string_view, 4> formats{"v18", "v110", "v112", "v114"};

/// Programs bound formats from above to have files that others can read, and many open them under the same bound (MED, with 1.8's):
/// HDF5 then refuses files in newer formats, and to make one with pages.
bool allows(File& file, const std::string& key, Id access, int format) {
    const Library& library = *file.library;
    const List untouched(library, by_default, library.file_access);
    int low = 0;
    int high = 0;
    int newest = 0;
    if (!untouched || library.H5Pget_libver_bounds(untouched.id(), &low, &newest) < 0 ||
        library.H5Pget_libver_bounds(access, &low, &high) < 0 || high == newest || high >= format)
        return true;
    const auto place = static_cast<std::size_t>(std::max(high, 1) - 1);
    file.refuse(key + ": the program allows no formats newer than " + std::string(formats[place]) +
                " (H5Pset_libver_bounds)");
    return false;
}

void bound_versions(const Change& change) {
    const std::string& wished = change.file.wish().libver;
    const auto found = std::find(formats.begin(), formats.end(), wished);
    if (found == formats.end()) return;
    using Pair = std::pair<int, int>;
    const int low = static_cast<int>(found - formats.begin()) + 1;
    if (!allows(change.file, "libver", change.list, low)) return;
    Pair now{};
    change.library.H5Pget_libver_bounds(change.list, &now.first, &now.second);
    set(
        change, "formats from " + wished + " on",
        [get = change.library.H5Pget_libver_bounds](Id list, Pair& pair) {
            return get(list, &pair.first, &pair.second);
        },
        [put = change.library.H5Pset_libver_bounds](Id list, const Pair& pair) {
            return put(list, pair.first, pair.second);
        },
        Pair{low, std::max(low, now.second)});
}

void buffer_pages(const Change& change, bool existing, Size user_block) {
    File& file = change.file;
    const std::int64_t bytes = file.wish().page_buffer;
    if (bytes == 0) return;
    // Whoever opens the file: H5F_open() of a library that is built for MPI refuses every file with a page buffer.
    if (file.library->H5Pget_fapl_mpio != nullptr)
        file.refuse("page_buffer: an HDF5 that is built for MPI has none");
    else if (existing)
        file.refuse("page_buffer: the file is there already, and may have no pages");
    else if (file.library->H5Pset_page_buffer_size == nullptr)
        file.refuse("page_buffer: HDF5 " + file.library->version() + " has none");
    else if (file.wish().page == 0 || fits(file, "page", file.wish().page, user_block))
        // Of a library without MPI: the list is a copy.
        say(file, change.applied, "page buffer of " + exact_size_text(bytes),
            file.library->H5Pset_page_buffer_size(change.list, static_cast<std::size_t>(bytes), 0, 0));
}

}  // namespace

void change_access(File& file, Id access, bool existing, Size user_block, Words& applied, Undo* undo) {
    const policy::Hdf5Options& wish = file.wish();
    const Library& library = *file.library;
    const Change change{file, library, access, applied, undo};
    make_collective(change);
    if (wish.sieve_buffer > 0) {
        if (file.parallel)
            file.refuse("sieve_buffer: HDF5 does not sieve files that are opened through MPI-IO");
        else
            set_one(change, "sieve buffer of " + exact_size_text(wish.sieve_buffer), library.H5Pget_sieve_buf_size,
                    library.H5Pset_sieve_buf_size, static_cast<std::size_t>(wish.sieve_buffer));
    }
    if (!file.writable) {
        file.note("opened for reading only: what is for writing does not apply");
        return;
    }
    if (wish.alignment > 0 || wish.alignment_by_layout) align(change, user_block);
    if (wish.metadata_block > 0)
        set_one(change, "metadata blocks of " + exact_size_text(wish.metadata_block), library.H5Pget_meta_block_size,
                library.H5Pset_meta_block_size, static_cast<Size>(wish.metadata_block));
    if (wish.small_data_block > 0)
        set_one(change, "small data blocks of " + exact_size_text(wish.small_data_block),
                library.H5Pget_small_data_block_size, library.H5Pset_small_data_block_size,
                static_cast<Size>(wish.small_data_block));
    if (wish.hold_metadata > 0 || wish.hold_all_metadata) hold_metadata(change);
    if (!wish.libver.empty()) bound_versions(change);
    buffer_pages(change, existing, user_block);
    if (existing && (wish.page > 0 || wish.istore_k > 0 || wish.istore_k_by_chunks))
        file.note("page, istore_k: chosen when a file is made, and this one is there already");
}

Size user_block_of(const Library& library, Id creation) {
    Size bytes = 0;
    return library.H5Pget_userblock(creation, &bytes) >= 0 ? bytes : 0;
}

void change_creation(File& file, Id creation, Id access, std::int64_t most_chunks, Words& applied) {
    const policy::Hdf5Options& wish = file.wish();
    const Library& library = *file.library;
    std::int64_t k = wish.istore_k;
    if (wish.istore_k_by_chunks) {
        // One node for all chunks (figure 4 of the paper), which are as many as an earlier dataset had, else one a rank.
        constexpr std::int64_t most = (1 << 15) - 1;
        unsigned now = 0;
        library.H5Pget_istore_k(creation, &now);
        const std::int64_t chunks = std::max<std::int64_t>(most_chunks, file.ranks);
        k = std::min(most, (chunks + 1) / 2);
        if (k <= now) k = 0;  // the program's node is large enough
    }
    if (k > 0)
        say(file, applied, "chunk index nodes of " + std::to_string(2 * k) + " chunks",
            library.H5Pset_istore_k(creation, static_cast<unsigned>(k)));
    if (wish.page == 0) return;
    if (library.H5Pset_file_space_strategy == nullptr || library.H5Pset_file_space_page_size == nullptr) {
        file.refuse("page: HDF5 " + library.version() + " has no pages");
        return;
    }
    constexpr int first_with_pages = 2;  // v110
    if (!allows(file, "page", access, first_with_pages)) return;
    if (!fits(file, "page", wish.page, user_block_of(library, creation))) return;
    const int code = library.H5Pset_file_space_strategy(creation, strategy_page, false, 1);
    say(file, applied, "pages of " + exact_size_text(wish.page),
        code < 0 ? code : library.H5Pset_file_space_page_size(creation, static_cast<Size>(wish.page)));
}

}  // namespace ioweir::hdf5
