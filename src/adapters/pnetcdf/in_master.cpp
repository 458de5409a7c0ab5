#include "adapters/pnetcdf/in_master.hpp"

#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {

// Not varn, with which the library (1.12) fails where one variable alone has records.
std::vector<int> begin_in_master(const File& file, std::span<Wanted> wanted, bool writing) {
    std::vector<int> requests(wanted.size(), no_request);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        Wanted& one = wanted[i];
        if (file.is_divided(one.variable)) continue;
        // The library may swap bytes there until the request is waited for, as in the program's own calls.
        std::byte* data = writing ? const_cast<std::byte*>(one.from) : one.to;
        one.error = begin_request(*file.library, file.master, one.variable, one.request, one.element, data, writing,
                                  requests[i]);
    }
    return requests;
}

int carry_out_in_master(const File& file, std::span<Wanted> wanted, bool writing) {
    std::vector<int> requests = begin_in_master(file, wanted, writing);
    std::vector<int> statuses(requests.size(), no_error);
    const auto wait = file.state == File::State::independent ? file.library->wait : file.library->wait_all;
    const int code = wait(file.master, static_cast<int>(requests.size()), requests.data(), statuses.data());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i].error == no_error) wanted[i].error = statuses[i];
    return code;
}

}  // namespace ioweir::pnetcdf
