// ioweir.h: checks arguments, keeps exceptions inside, and says errors. What is done lives in write_set.cpp and read_set.cpp.
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "ioweir/ioweir.h"
#include "partition/read_set.hpp"
#include "partition/service.hpp"
#include "partition/write_set.hpp"

using ioweir::partition::argument;
using ioweir::partition::BlockHeader;
using ioweir::partition::Failure;
using ioweir::partition::HandedSet;
using ioweir::partition::ItemType;
using ioweir::partition::ReadSet;
using ioweir::partition::Service;
using ioweir::partition::SetWriter;
using ioweir::partition::Wanted;
using ioweir::partition::WriteSet;

struct ioweir_service {
    std::unique_ptr<Service> service;
};

struct ioweir_set {
    std::unique_ptr<SetWriter> write;
    std::unique_ptr<ReadSet> read;
    std::map<std::pair<std::string, std::int64_t>, BlockHeader> kept;  ///< headers without their blocks
};

namespace {

std::string& last_text() {
    thread_local std::string text = "no error";
    return text;
}

ioweir::partition::WriteFigures& last_figures() {
    thread_local ioweir::partition::WriteFigures figures;
    return figures;
}

int fail(const Failure& failure) {
    last_text() = "ioweir: " + failure.error.message();
    return failure.code;
}

int fail(const std::optional<Failure>& failure) { return failure ? fail(*failure) : IOWEIR_SUCCESS; }

int wrong(const std::string& what, const std::string& value, const std::string& remedy) {
    return fail(argument(what, value, remedy));
}

/// No exception may reach a C program.
template <typename Body>
int guarded(Body body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        try {
            last_text() = "ioweir: out of memory";
        } catch (...) {
        }
        return IOWEIR_ERR_MEMORY;
    }
}

int not_writing() { return wrong("a set that is not being written", "", "use one of ioweir_set_create()"); }
int not_reading() { return wrong("a set that is not being read", "", "use one of ioweir_set_open()"); }

std::optional<std::int64_t> item_bytes(int type) {
    if (type == IOWEIR_FLOAT64) return bytes_of(ItemType::float64);
    if (type == IOWEIR_INT32) return bytes_of(ItemType::int32);
    return std::nullopt;
}

std::int64_t number_of(const std::vector<std::string>& fields, const std::string& field) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i] == field) return static_cast<std::int64_t>(i);
    }
    return -1;
}

Wanted wanted_of(const char* base, int64_t step, int64_t parts, int64_t files, int n_fields,
                 const char* const* fields) {
    Wanted wanted{base != nullptr ? base : "", step, parts, files, {}};
    for (int i = 0; i < n_fields && fields != nullptr; ++i)
        wanted.fields.emplace_back(fields[i] != nullptr ? fields[i] : "");
    return wanted;
}

/// What is wrong with a block's arguments; else its header and the number of its field.
std::optional<Failure> describe(const SetWriter& set, const char* field, std::int64_t part, int type,
                                std::int64_t items, int n_parameters, const std::int64_t* parameters,
                                BlockHeader& header, std::int64_t& number) {
    const std::string name = field != nullptr ? field : "";
    number = number_of(set.fields(), name);
    if (number < 0) {
        std::string known;
        for (const std::string& one : set.fields()) known += (known.empty() ? "" : ", ") + one;
        return argument("no field of this set", name, "it was begun with: " + known);
    }
    if (part == IOWEIR_NO_PART) return std::nullopt;
    if (part < 0 || part >= set.parts())
        return argument("no part of this rank", std::to_string(part),
                        "0 to " + std::to_string(set.parts() - 1) + ", or IOWEIR_NO_PART");
    if (set.is_written(number, part))
        return argument("a block that is written already", name + ", part " + std::to_string(part), "write each once");
    const auto size = item_bytes(type);
    if (!size) return argument("no type of items", std::to_string(type), "IOWEIR_FLOAT64 or IOWEIR_INT32");
    std::int64_t bytes = 0;
    if (items < 0 || __builtin_mul_overflow(items, *size, &bytes) || bytes > INT64_MAX / 2)
        return argument("a number of items that cannot be", std::to_string(items), "0 or more");
    if (n_parameters < 0 || (n_parameters > 0 && parameters == nullptr))
        return argument("a number of parameters that cannot be", std::to_string(n_parameters),
                        "0 or more, and where they are");
    header = {name, set.global_part(part), bytes, {}};
    if (n_parameters > 0) header.parameters.assign(parameters, parameters + n_parameters);
    return std::nullopt;
}

}  // namespace

extern "C" {

#define IOWEIR_API __attribute__((visibility("default")))

IOWEIR_API int ioweir_set_create(MPI_Comm comm, const char* base, int64_t step, int64_t parts, int64_t files,
                                 int n_fields, const char* const* fields, MPI_Info info, ioweir_set** set) {
    if (set == nullptr) return wrong("no place for the set", "NULL", "give an ioweir_set **");
    *set = nullptr;
    return guarded([&] {
        std::unique_ptr<WriteSet> written;
        if (auto failure = WriteSet::create(comm, wanted_of(base, step, parts, files, n_fields, fields), info, written))
            return fail(failure);
        *set = new ioweir_set{std::move(written), nullptr, {}};
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_create_by(ioweir_service* service, const char* base, int64_t step, int64_t parts,
                                    int64_t files, int n_fields, const char* const* fields, MPI_Info info,
                                    ioweir_set** set) {
    if (set == nullptr) return wrong("no place for the set", "NULL", "give an ioweir_set **");
    *set = nullptr;
    if (service == nullptr || service->service->is_delegate())
        return wrong("no worker's service", "", "give what ioweir_split() gave to a worker");
    return guarded([&] {
        std::unique_ptr<HandedSet> written;
        if (auto failure = HandedSet::create(*service->service, wanted_of(base, step, parts, files, n_fields, fields),
                                             info, written))
            return fail(failure);
        *set = new ioweir_set{std::move(written), nullptr, {}};
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_split(MPI_Comm comm, int64_t delegates, MPI_Info info, MPI_Comm* workers,
                            ioweir_service** service) {
    if (service == nullptr || workers == nullptr)
        return wrong("no place for the service or the workers", "NULL", "give both");
    *service = nullptr;
    *workers = MPI_COMM_NULL;
    return guarded([&] {
        auto made = std::make_unique<ioweir_service>();
        if (auto failure = Service::split(comm, delegates, info, made->service)) return fail(failure);
        *workers = made->service->workers();
        *service = made.release();
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_service_run(ioweir_service* service) {
    if (service == nullptr || !service->service->is_delegate())
        return wrong("no delegate's service", "", "give what ioweir_split() gave where workers is MPI_COMM_NULL");
    return guarded([&] {
        service->service->serve();
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_service_wait(ioweir_service* service) {
    if (service == nullptr || service->service->is_delegate())
        return wrong("no worker's service", "", "give what ioweir_split() gave to a worker");
    return guarded([&] { return fail(service->service->wait()); });
}

IOWEIR_API int ioweir_service_end(ioweir_service** service) {
    if (service == nullptr || *service == nullptr) return wrong("no service", "NULL", "give what ioweir_split() gave");
    if ((*service)->service->has_open_set())
        return wrong("a service whose set is open", "", "close or abandon it first, then end the service again");
    const std::unique_ptr<ioweir_service> mine(std::exchange(*service, nullptr));
    return guarded(
        [&] { return mine->service->is_delegate() ? static_cast<int>(IOWEIR_SUCCESS) : fail(mine->service->leave()); });
}

IOWEIR_API int ioweir_set_write(ioweir_set* set, const char* field, int64_t part, int type, int64_t items,
                                int n_parameters, const int64_t* parameters, const void* data) {
    if (set == nullptr || !set->write) return not_writing();
    return guarded([&] {
        BlockHeader header;
        std::int64_t number = -1;
        auto mine = describe(*set->write, field, part, type, items, n_parameters, parameters, header, number);
        if (!mine && header.bytes > 0 && data == nullptr)
            mine = argument("no data", "NULL", "give where the items are");
        return fail(set->write->write(number, part, header, data, mine));
    });
}

IOWEIR_API int ioweir_set_write_header(ioweir_set* set, const char* field, int64_t part, int type, int64_t items,
                                       int n_parameters, const int64_t* parameters) {
    if (set == nullptr || !set->write) return not_writing();
    return guarded([&] {
        BlockHeader header;
        std::int64_t number = -1;
        if (auto mine = describe(*set->write, field, part, type, items, n_parameters, parameters, header, number))
            return fail(mine);
        if (part != IOWEIR_NO_PART) set->kept[{header.field, part}] = header;
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_write_block(ioweir_set* set, const char* field, int64_t part, const void* data) {
    if (set == nullptr || !set->write) return not_writing();
    return guarded([&] {
        BlockHeader header;
        const std::string name = field != nullptr ? field : "";
        std::int64_t number = number_of(set->write->fields(), name);
        std::optional<Failure> mine;
        const auto kept = set->kept.find({name, part});
        if (part != IOWEIR_NO_PART && kept == set->kept.end()) {
            mine = argument("a block without a header", name + ", part " + std::to_string(part),
                            "call ioweir_set_write_header() first");
        } else if (part != IOWEIR_NO_PART) {
            header = kept->second;
            set->kept.erase(kept);
            if (header.bytes > 0 && data == nullptr) mine = argument("no data", "NULL", "give where the items are");
        }
        return fail(set->write->write(number, part, header, data, mine));
    });
}

IOWEIR_API int ioweir_set_figures(const ioweir_set* set, ioweir_figures* figures) {
    if (figures == nullptr) return wrong("no place for the figures", "NULL", "give an ioweir_figures *");
    if (set != nullptr && !set->write) return not_writing();
    const auto& known = set != nullptr ? set->write->figures() : last_figures();
    *figures = {known.useful_bytes, known.padded_bytes, known.write_ns, known.calls};
    return IOWEIR_SUCCESS;
}

IOWEIR_API int ioweir_set_close(ioweir_set** set) {
    if (set == nullptr || *set == nullptr) return wrong("no set", "NULL", "give one that is open");
    const std::unique_ptr<ioweir_set> mine(std::exchange(*set, nullptr));
    return guarded([&] {
        if (!mine->write) return static_cast<int>(IOWEIR_SUCCESS);
        const auto failure = mine->write->close();
        last_figures() = mine->write->figures();
        return fail(failure);
    });
}

IOWEIR_API int ioweir_set_abandon(ioweir_set** set) {
    if (set == nullptr || *set == nullptr) return wrong("no set", "NULL", "give one that is open");
    const std::unique_ptr<ioweir_set> mine(std::exchange(*set, nullptr));
    return guarded([&] {
        if (mine->write) mine->write->abandon();
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_open(MPI_Comm comm, const char* base, int64_t step, MPI_Info info, ioweir_set** set) {
    if (set == nullptr) return wrong("no place for the set", "NULL", "give an ioweir_set **");
    *set = nullptr;
    return guarded([&] {
        auto made = std::make_unique<ioweir_set>();
        if (auto failure = ReadSet::open(comm, base != nullptr ? base : "", step, info, made->read))
            return fail(failure);
        *set = made.release();
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_inquire(const ioweir_set* set, int64_t* step, int64_t* files, int64_t* parts, int* n_fields) {
    if (set == nullptr) return wrong("no set", "NULL", "give one that is open");
    const auto put = [](auto* to, auto value) {
        if (to != nullptr) *to = static_cast<std::remove_reference_t<decltype(*to)>>(value);
    };
    if (set->write) {
        put(step, set->write->step());
        put(files, set->write->files());
        put(parts, set->write->all_parts());
        put(n_fields, set->write->fields().size());
    } else {
        const auto& reader = set->read->reader();
        put(step, reader.name().step);
        put(files, reader.manifest().files.size());
        put(parts, reader.manifest().parts());
        put(n_fields, reader.fields().size());
    }
    return IOWEIR_SUCCESS;
}

IOWEIR_API int ioweir_set_field(const ioweir_set* set, int index, const char** name) {
    if (set == nullptr || name == nullptr) return wrong("no set, or no place for the name", "NULL", "give both");
    const auto& fields = set->write ? set->write->fields() : set->read->reader().fields();
    if (index < 0 || index >= std::ssize(fields))
        return wrong("no such field", std::to_string(index), "0 to " + std::to_string(std::ssize(fields) - 1));
    *name = fields[static_cast<std::size_t>(index)].c_str();
    return IOWEIR_SUCCESS;
}

IOWEIR_API int ioweir_set_my_parts(const ioweir_set* set, int64_t* first, int64_t* count) {
    if (set == nullptr || first == nullptr || count == nullptr) return wrong("no set, or no place", "NULL", "give all");
    *first = set->write ? set->write->global_part(0) : set->read->my_parts().first + 1;
    *count = set->write ? set->write->parts() : set->read->my_parts().count;
    return IOWEIR_SUCCESS;
}

IOWEIR_API int ioweir_set_query(ioweir_set* set, const char* field, int64_t part, int64_t* bytes, int* n_parameters,
                                int64_t* parameters) {
    if (set == nullptr || !set->read) return not_reading();
    return guarded([&] {
        const auto block = set->read->reader().block(field != nullptr ? field : "", part - 1);
        if (!block) return fail(ReadSet::failure_of(block.error()));
        const BlockHeader& header = block.value().header;
        if (bytes != nullptr) *bytes = header.bytes;
        if (n_parameters != nullptr) {
            const int room = std::exchange(*n_parameters, static_cast<int>(header.parameters.size()));
            for (int i = 0; i < room && i < *n_parameters && parameters != nullptr; ++i)
                parameters[i] = header.parameters[static_cast<std::size_t>(i)];
        }
        return static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_read(ioweir_set* set, const char* field, int64_t part, int type, int64_t bytes, void* data) {
    if (set == nullptr || !set->read) return not_reading();
    return guarded([&] {
        const auto size = item_bytes(type);
        if (!size) return wrong("no type of items", std::to_string(type), "IOWEIR_FLOAT64 or IOWEIR_INT32");
        if (bytes > 0 && data == nullptr) return wrong("no place for the items", "NULL", "give where they go");
        const auto error = set->read->reader().read(field != nullptr ? field : "", part - 1, data, bytes, *size);
        return error ? fail(ReadSet::failure_of(*error)) : static_cast<int>(IOWEIR_SUCCESS);
    });
}

IOWEIR_API int ioweir_set_read_all(ioweir_set* set, const char* field, int64_t part, int type, int64_t bytes,
                                   void* data) {
    if (set == nullptr || !set->read) return not_reading();
    return guarded([&] {
        const auto size = item_bytes(type);
        std::optional<Failure> mine;
        if (part != IOWEIR_NO_PART && !size)
            mine = argument("no type of items", std::to_string(type), "IOWEIR_FLOAT64 or IOWEIR_INT32");
        else if (part != IOWEIR_NO_PART && bytes > 0 && data == nullptr)
            mine = argument("no place for the items", "NULL", "give where they go");
        else if (part < 1 && part != IOWEIR_NO_PART)
            mine = argument("no such part", std::to_string(part), "parts count from 1");
        const std::int64_t number = part == IOWEIR_NO_PART ? -1 : part - 1;
        return fail(set->read->read_all(field != nullptr ? field : "", number, data, bytes, size.value_or(1), mine));
    });
}

IOWEIR_API const char* ioweir_error_text(void) { return last_text().c_str(); }

}  // extern "C"
