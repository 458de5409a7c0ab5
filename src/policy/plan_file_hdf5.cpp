#include "policy/plan_file_hdf5.hpp"

#include <algorithm>
#include <array>

#include "policy/plan_file.hpp"
#include "policy/plan_values.hpp"

namespace ioweir::policy {
namespace {

constexpr std::array<std::string_view, 15> hdf5_keys{
    "alignment",           "threshold", "hold_metadata", "metadata_block", "small_data_block", "sieve_buffer",
    "collective_metadata", "fill",      "chunks",        "istore_k",       "libver",           "page",
    "page_buffer",         "transfer",  "memory_shape"};
constexpr std::array<std::string_view, 4> libver_names{"v18", "v110", "v112", "v114"};

// Limits of HDF5: H5C__MAX_MAX_CACHE_SIZE, H5F_FILE_SPACE_PAGE_SIZE_MIN, half of HDF5_BTREE_IK_MAX_ENTRIES,
// H5S_MAX_RANK.
constexpr std::int64_t least_cache_bytes = 64 << 10;
constexpr std::int64_t most_cache_bytes = 128 << 20;
constexpr std::int64_t least_page_bytes = 512;
constexpr std::int64_t most_page_bytes = 1 << 30;
// No file system's stripes, and no file's metadata, are larger; with such blocks HDF5 could not allot anything.
constexpr std::int64_t most_block_bytes = std::int64_t{1} << 40;
constexpr std::int64_t most_istore_k = (1 << 15) - 1;
constexpr std::size_t most_dimensions = 32;
constexpr std::int64_t most_elements = (std::int64_t{1} << 32) - 1;

class Reader : PlanValues {
public:
    explicit Reader(std::string_view name) : PlanValues(name) {}

    Result<Hdf5Options> read(const toml::node& node) {
        const toml::table* table = node.as_table();
        if (table == nullptr) {
            fail("not a table", what_is("hdf5", node), "write hdf5 = { alignment = \"1 MiB\" }");
            return error();
        }
        Hdf5Options options;
        check_keys(*table, hdf5_keys, "");
        read_sizes(*table, options);
        read_words(*table, options);
        if (const toml::node* chunks = table->get("chunks"); chunks != nullptr && ok()) read_chunks(*chunks, options);
        if (ok()) check_together(*table, options);
        if (!ok()) return error();
        return options;
    }

private:
    void read_sizes(const toml::table& table, Hdf5Options& options) {
        options.alignment_by_layout = is_word(table, "alignment", "auto");
        if (!options.alignment_by_layout) read_block(table, "alignment", options.alignment, "auto");
        read_block(table, "threshold", options.threshold);
        options.hold_all_metadata = is_word(table, "hold_metadata", "all");
        if (!options.hold_all_metadata) {
            read_size(table, "hold_metadata", options.hold_metadata, "all");
            check_range(table, "hold_metadata", options.hold_metadata, least_cache_bytes, most_cache_bytes,
                        "HDF5's metadata cache takes 64 KiB to 128 MiB: write \"all\" for no bound");
        }
        read_block(table, "metadata_block", options.metadata_block);
        read_block(table, "small_data_block", options.small_data_block);
        read_block(table, "sieve_buffer", options.sieve_buffer);
        read_size(table, "page", options.page);
        check_range(table, "page", options.page, least_page_bytes, most_page_bytes, "HDF5's pages have 512 B to 1 GiB");
        read_block(table, "page_buffer", options.page_buffer);
        options.istore_k_by_chunks = is_word(table, "istore_k", "auto");
        if (const toml::node* node = table.get("istore_k"); node != nullptr && !options.istore_k_by_chunks) {
            const auto* number = node->as_integer();
            options.istore_k = number != nullptr ? number->get() : 0;
            if (options.istore_k < 1 || options.istore_k > most_istore_k)
                fail("not half a number of chunks", what_is("istore_k", *node),
                     "write a whole number from 1 to 32767 (a node of HDF5's index has at most 65534 chunks), or "
                     "\"auto\"");
        }
    }

    void read_block(const toml::table& table, std::string_view key, std::int64_t& bytes, std::string_view word = "") {
        read_size(table, key, bytes, word);
        check_range(table, key, bytes, 1, most_block_bytes, "write 1 TiB at most");
    }

    void read_words(const toml::table& table, Hdf5Options& options) {
        static constexpr std::array<std::string_view, 2> collective{"writes", "all"};
        static constexpr std::array<std::string_view, 1> fill{"never"};
        static constexpr std::array<std::string_view, 1> memory_shape{"file"};
        static constexpr std::array<std::string_view, 3> transfer{"independent", "collective", "auto"};
        options.collective_metadata = static_cast<Hdf5Collective>(one_of(table, "collective_metadata", collective));
        options.never_fill = one_of(table, "fill", fill) != 0;
        options.memory_in_file_shape = one_of(table, "memory_shape", memory_shape) != 0;
        options.transfer = static_cast<Hdf5Transfer>(one_of(table, "transfer", transfer));
        if (const std::size_t number = one_of(table, "libver", libver_names); number > 0)
            options.libver = std::string(libver_names[number - 1]);
    }

    void read_chunks(const toml::node& node, Hdf5Options& options) {
        if (const auto* word = node.as_string()) {
            options.learn_chunks = word->get() == "learn";
            if (!options.learn_chunks) say_chunks(node);
        } else if (node.is_array()) {
            options.chunks.push_back({"*", read_shape("chunks", node)});
        } else if (const auto* table = node.as_table()) {
            if (table->empty()) return say_chunks(node);
            for (auto&& [pattern, shape] : *table) {
                const std::string name(pattern.str());
                options.chunks.push_back({name, read_shape("chunks of " + quoted(name), shape)});
                if (!ok()) return;
            }
        } else {
            say_chunks(node);
        }
    }

    void say_chunks(const toml::node& node) {
        fail("no shape of chunks", what_is("chunks", node),
             "write \"learn\", a list such as [64, 64, 64], or a table { \"NAME\" = [64, 64, 64] }");
    }

    std::vector<std::int64_t> read_shape(const std::string& key, const toml::node& node) {
        std::vector<std::int64_t> shape;
        const toml::array* all = node.as_array();
        std::int64_t elements = 1;
        bool good = all != nullptr && !all->empty() && all->size() <= most_dimensions;
        for (std::size_t i = 0; good && i < all->size(); ++i) {
            const auto* number = all->get(i)->as_integer();
            good = number != nullptr && number->get() > 0 && number->get() <= most_elements / elements;
            if (!good) break;
            elements *= number->get();
            shape.push_back(number->get());
        }
        if (!good && ok())
            fail("not the shape of a chunk", key + " = " + list_text(node) + at(node.source()),
                 "write 1 to 32 whole numbers from 1, with fewer than 4294967296 elements together");
        return shape;
    }

    /// "[4, 'x']"
    static std::string list_text(const toml::node& node) {
        const toml::array* all = node.as_array();
        if (all == nullptr) return value_text(node);
        std::string text;
        for (const toml::node& one : *all) text += (text.empty() ? "" : ", ") + value_text(one);
        return "[" + text + "]";
    }

    /// Keys that mean nothing alone.
    void check_together(const toml::table& table, const Hdf5Options& options) {
        const auto needs = [&](const char* key, bool given, bool there, const char* what, const char* remedy) {
            if (given && !there && ok())
                fail(std::string(key) + " without " + what, what_is(key, *table.get(key)), remedy);
        };
        needs("threshold", options.threshold > 0, options.alignment > 0 || options.alignment_by_layout, "alignment",
              "write alignment = \"1 MiB\" or \"auto\" beside it, or leave it out");
        needs("page_buffer", options.page_buffer > 0, options.page > 0, "page",
              "write page = \"64 KiB\" beside it, or leave it out");
        if (options.page_buffer > 0 && options.page_buffer < options.page && ok())
            fail("a page buffer smaller than a page", what_is("page_buffer", *table.get("page_buffer")),
                 "make it a multiple of page");
    }

    bool is_word(const toml::table& table, std::string_view key, std::string_view word) {
        const toml::node* node = table.get(key);
        const auto* text = node != nullptr ? node->as_string() : nullptr;
        return text != nullptr && text->get() == word;
    }

    void check_range(const toml::table& table, std::string_view key, std::int64_t value, std::int64_t least,
                     std::int64_t most, const char* remedy) {
        if (!ok() || !table.contains(key) || (value >= least && value <= most)) return;
        fail("a value that HDF5 cannot have",
             std::string(key) + " = " + std::to_string(value) + at(table.get(key)->source()), remedy);
    }

    /// The number of the word in `words`, from 1; 0: the key is not there.
    template <std::size_t count>
    std::size_t one_of(const toml::table& table, std::string_view key,
                       const std::array<std::string_view, count>& words) {
        const toml::node* node = table.get(key);
        if (node == nullptr || !ok()) return 0;
        const auto* text = node->as_string();
        for (std::size_t i = 0; text != nullptr && i < count; ++i)
            if (text->get() == words[i]) return i + 1;
        std::string remedy = "write ";
        for (std::size_t i = 0; i < count; ++i)
            remedy += (i == 0 ? "\"" : i + 1 == count ? " or \"" : ", \"") + std::string(words[i]) + "\"";
        fail("unknown " + std::string(key), value_text(*node) + at(node->source()), remedy);
        return 0;
    }
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t length : shape) text += (text.empty() ? "[" : ", ") + std::to_string(length);
    return text + "]";
}

}  // namespace

bool is_hdf5_key(std::string_view key) { return std::find(hdf5_keys.begin(), hdf5_keys.end(), key) != hdf5_keys.end(); }

Result<Hdf5Options> read_hdf5_options(const toml::node& node, std::string_view name) { return Reader(name).read(node); }

std::string hdf5_text(const Hdf5Options& options) {
    std::string inner;
    const auto put = [&inner](const char* key, const std::string& value) {
        inner += (inner.empty() ? "" : ", ") + std::string(key) + " = " + value;
    };
    const auto put_size = [&](const char* key, std::int64_t bytes) {
        if (bytes > 0) put(key, toml_string(exact_size_text(bytes)));
    };
    if (options.alignment_by_layout) put("alignment", "\"auto\"");
    put_size("alignment", options.alignment);
    put_size("threshold", options.threshold);
    if (options.hold_all_metadata) put("hold_metadata", "\"all\"");
    put_size("hold_metadata", options.hold_metadata);
    put_size("metadata_block", options.metadata_block);
    put_size("small_data_block", options.small_data_block);
    put_size("sieve_buffer", options.sieve_buffer);
    if (options.collective_metadata != Hdf5Collective::as_program)
        put("collective_metadata", options.collective_metadata == Hdf5Collective::writes ? "\"writes\"" : "\"all\"");
    if (options.never_fill) put("fill", "\"never\"");
    if (options.learn_chunks) put("chunks", "\"learn\"");
    if (!options.chunks.empty()) {
        std::string table;
        for (const Hdf5Chunks& one : options.chunks)
            table += (table.empty() ? "{ " : ", ") + toml_string(one.dataset) + " = " + shape_text(one.shape);
        put("chunks", table + " }");
    }
    if (options.istore_k_by_chunks) put("istore_k", "\"auto\"");
    if (options.istore_k > 0) put("istore_k", std::to_string(options.istore_k));
    if (!options.libver.empty()) put("libver", toml_string(options.libver));
    put_size("page", options.page);
    put_size("page_buffer", options.page_buffer);
    static constexpr std::array<const char*, 4> transfers{"", "\"independent\"", "\"collective\"", "\"auto\""};
    if (options.transfer != Hdf5Transfer::as_program)
        put("transfer", transfers[static_cast<std::size_t>(options.transfer)]);
    if (options.memory_in_file_shape) put("memory_shape", "\"file\"");
    return inner.empty() ? "" : "hdf5    = { " + inner + " }\n";
}

}  // namespace ioweir::policy
