// The trace part of ioweir._core; bound by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>

#include "format/reader.hpp"

namespace ioweir {

/// Trace files that Python holds. Their events are decoded into columns when somebody asks for a column.
class PyTrace {
public:
    explicit PyTrace(format::TraceFiles&& files) : files_(std::make_shared<format::TraceFiles>(std::move(files))) {}
    [[nodiscard]] const format::Trace& about() const { return files_->about(); }
    [[nodiscard]] const std::shared_ptr<format::TraceFiles>& files() const { return files_; }
    /// To be called with the interpreter's lock held.
    [[nodiscard]] const std::shared_ptr<format::Events>& events() {
        if (events_ == nullptr) {
            const nanobind::gil_scoped_release release;
            const std::scoped_lock lock(*decoding_);
            if (events_ == nullptr) events_ = std::make_shared<format::Events>(files_->read_events());
        }
        return events_;
    }

private:
    std::shared_ptr<format::TraceFiles> files_;
    std::shared_ptr<format::Events> events_;
    std::unique_ptr<std::mutex> decoding_ = std::make_unique<std::mutex>();
};

void bind_analysis(nanobind::module_& module);
void bind_calls(nanobind::module_& module);
void bind_requests(nanobind::module_& module, nanobind::class_<PyTrace>& trace);
void bind_writer(nanobind::module_& module);

}  // namespace ioweir
