// What HDF5 calls are about: the file behind an id, and the bytes of a transfer.
//
// HDF5 clears its error stack whenever an API function is entered, and prints what a failing one puts there. So questions are
// asked before a call (which would clear the stack as well) or after a successful one (which left it empty), and only of ids
// of the right kind, where they cannot fail.
#include <atomic>

#include "base/handle_table.hpp"
#include "tracer/hooks/library.hpp"

namespace ioweir::tracer::library {
namespace {

using Id = std::int64_t;

// H5I_type_t; the same from 1.8 to 1.14 (what follows the datasets is not).
constexpr int is_file = 1;
constexpr int is_group = 2;
constexpr int is_type = 3;
constexpr int is_space = 4;
constexpr int is_dataset = 5;
constexpr int is_event_set = 16;  // 1.14

/// What can be asked again if it is forgotten, so that a program that leaves ids to be closed with their file, or names more
/// files than there is room for, costs no long searches: the table begins anew before it is full.
class Memory {
public:
    [[nodiscard]] std::uint32_t find(std::uintptr_t key) const { return table_.find(key); }
    void insert(std::uintptr_t key, std::uint32_t file) {
        if (entries_.fetch_add(1, std::memory_order_relaxed) >= most) clear();
        table_.insert(key, file);
    }
    void erase(std::uintptr_t key) {
        if (table_.find(key) == 0) return;
        table_.erase(key);
        entries_.fetch_sub(1, std::memory_order_relaxed);
    }
    void clear() {
        entries_.store(0, std::memory_order_relaxed);
        table_.clear();
    }

private:
    static constexpr std::int32_t most = HandleTable<std::uint32_t>::capacity * 3 / 4;
    HandleTable<std::uint32_t> table_;
    std::atomic<std::int32_t> entries_;  // about
};
Memory id_files;    // id -> file + 1
Memory name_files;  // hash of a name as H5Fget_name gives it -> file + 1

std::uintptr_t key_of(const Provider& provider, Id id) {
    return static_cast<std::uintptr_t>(id) ^ static_cast<std::uintptr_t>(provider.number) << 48;
}

std::uintptr_t name_key(const Provider& provider, const char* name) {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325U + provider.number;  // FNV-1a
    for (const char* c = name; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100'0000'01b3U;
    return hash | 2;  // neither of the table's own marks
}

int kind_of(const Provider& provider, Id id) {
    return id > 2 ? provider.ask<int>(Query::H5Iget_type, id) : 0;  // H5S_ALL, H5S_BLOCK, H5S_PLIST are no ids
}

/// The file that HDF5 says an object lies in; 0 when it cannot be asked. Of a new name it is registered.
std::uint32_t ask_file(const Call& call, Id id) {
    const int kind = kind_of(call.provider, id);
    if (kind != is_file && kind != is_group && kind != is_dataset) return 0;
    char name[4096];
    const auto length = call.provider.ask<std::int64_t>(Query::H5Fget_name, id, static_cast<char*>(name), sizeof name);
    if (length <= 0 || length >= static_cast<std::int64_t>(sizeof name)) return 0;
    const std::uintptr_t key = name_key(call.provider, name);
    std::uint32_t file = name_files.find(key);
    if (file == 0) {
        file = register_named(call, name);
        name_files.insert(key, file);
    }
    return file;
}

/// file + 1 of an id.
std::uint32_t file_of_id(const Call& call, Id id) {
    std::uint32_t file = id_files.find(key_of(call.provider, id));
    if (file != 0) return file;
    file = ask_file(call, id);
    if (file != 0) id_files.insert(key_of(call.provider, id), file);
    return file;
}

std::int64_t points_of(const Provider& provider, Id dataset, Id memory_space, Id file_space) {
    for (const Id space : {memory_space, file_space})
        if (kind_of(provider, space) == is_space)
            return provider.ask<std::int64_t>(Query::H5Sget_select_npoints, space);
    if (kind_of(provider, dataset) != is_dataset) return 0;
    const Id space = provider.ask<Id>(Query::H5Dget_space, dataset);
    if (space < 0) return 0;
    const auto points = provider.ask<std::int64_t>(Query::H5Sget_simple_extent_npoints, space);
    provider.ask<int>(Query::H5Sclose, space);
    return points;
}

std::int64_t bytes_of(const Provider& provider, Id dataset, Id memory_type, Id memory_space, Id file_space) {
    if (kind_of(provider, memory_type) != is_type) return 0;
    const std::int64_t points = points_of(provider, dataset, memory_space, file_space);
    return points > 0 ? points * provider.ask<std::int64_t>(Query::H5Tget_size, memory_type) : 0;
}

/// Of several datasets in one call: the file is that of the first.
void describe_multi(const Call& call, Subject& subject) {
    const auto count = call.argument<std::size_t>(0);
    const auto* datasets = call.argument<const Id*>(1);
    const auto* types = call.argument<const Id*>(2);
    const auto* memory_spaces = call.argument<const Id*>(3);
    const auto* file_spaces = call.argument<const Id*>(4);
    if (count == 0 || datasets == nullptr || types == nullptr || memory_spaces == nullptr || file_spaces == nullptr)
        return;
    subject.file = file_of_id(call, datasets[0]);
    for (std::size_t i = 0; i < count; ++i)
        subject.bytes += bytes_of(call.provider, datasets[i], types[i], memory_spaces[i], file_spaces[i]);
}

/// file + 1 -> file.
std::uint32_t number_of(std::uint32_t file) { return file != 0 ? file - 1 : 0; }

}  // namespace

bool is_put_off(const LibraryFunction& about, const Provider& provider, const Word* arguments) {
    if (!about.asynchronous) return false;
    const auto set = static_cast<Id>(arguments[about.arguments - ahead_of_arguments - 1]);
    if (kind_of(provider, set) != is_event_set) return false;  // none: the call waits by itself
    std::size_t under_way = 0;
    provider.ask<int>(Query::H5ESget_count, set, &under_way);
    return under_way != 0;
}

bool concerns_hdf5(const LibraryFunction&, const Provider& provider, Word id) {
    return id_files.find(key_of(provider, static_cast<Id>(id))) != 0;
}

void before_hdf5(const Call& call, Subject& subject) {
    switch (call.about.body) {
        case Body::open:
        case Body::path:
            return;
        case Body::multi:
            describe_multi(call, subject);
            break;
        default: {
            const Id id = call.argument<Id>(call.about.location >= 0 ? call.about.location : 0);
            subject.file = file_of_id(call, id);
            if (call.about.body == Body::transfer)
                subject.bytes =
                    bytes_of(call.provider, id, call.argument<Id>(1), call.argument<Id>(2), call.argument<Id>(3));
            // Before the real call: afterwards another thread may already have the id again.
            if (call.about.body == Body::close) id_files.erase(key_of(call.provider, id));
            break;
        }
    }
    subject.file = number_of(subject.file);
}

void after_hdf5(const Call& call, Word result, bool failed, Subject& subject) {
    const Id made = static_cast<Id>(result);
    const Id id = call.about.arguments > 0 ? call.argument<Id>(0) : 0;
    switch (call.about.body) {
        case Body::open: {
            const char* path = call.argument<const char*>(call.about.path);
            const std::uint32_t file = register_named(call, path);
            subject.file = number_of(file);
            if (failed) return;
            name_files.insert(name_key(call.provider, path), file);
            id_files.insert(key_of(call.provider, made), file);
            return;
        }
        case Body::path:
            subject.file = number_of(register_named(call, call.argument<const char*>(call.about.path)));
            return;
        case Body::object:
            if (!failed && subject.file != 0) id_files.insert(key_of(call.provider, made), subject.file + 1);
            return;
        case Body::linked: {
            if (failed) return;
            const bool is_open = !is_put_off(call.about, call.provider, call.arguments);
            const std::uint32_t file = is_open ? ask_file(call, made) : 0;
            if (file != 0) subject.file = number_of(file);
            id_files.insert(key_of(call.provider, made), subject.file + 1);
            return;
        }
        case Body::close:
            if (failed && subject.file != 0) id_files.insert(key_of(call.provider, id), subject.file + 1);
            return;
        case Body::release:
            if (static_cast<std::int32_t>(result) == 0) id_files.erase(key_of(call.provider, id));
            return;
        case Body::chunk:
            if (failed) return;
            if (call.about.arguments == 6) {
                subject.bytes = call.argument<std::int64_t>(4);
            } else {
                std::uint64_t stored = 0;
                call.provider.ask<int>(Query::H5Dget_chunk_storage_size, id, call.argument<const void*>(2), &stored);
                subject.bytes = static_cast<std::int64_t>(stored);
            }
            return;
        case Body::forget:
            id_files.clear();
            name_files.clear();
            return;
        default:
            return;
    }
}

}  // namespace ioweir::tracer::library
