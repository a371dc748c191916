# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Declarations of the C++ core for _runtime.pyx; not installed."""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.set cimport set as cpp_set
from libcpp.string cimport string
from libcpp.vector cimport vector
from cyxla._runtime cimport Call, Input, ProgramSpec

cdef extern from "cyxla/cyxla.h" nogil:
    ctypedef struct Api "cyxla_api":
        pass
    const int CYXLA_ROUTE_DIRECT
    const unsigned int CYXLA_NEEDS_PYTHON

cdef extern from "base/error.h" namespace "cyxla" nogil:
    cdef enum class ErrorCode:
        kInternal
        kArgument
        kPlugin
        kCompile
        kExecution
        kUnsupported
        kShutdown
        kFork

cdef extern from "base/aligned_memory.h" namespace "cyxla" nogil:
    void* core_aligned_memory "cyxla::allocate_aligned"(size_t size) noexcept
    void core_free_aligned "cyxla::free_aligned"(void* pointer) noexcept

cdef extern from "pjrt/element_type.h" namespace "cyxla::pjrt" nogil:
    size_t core_itemsize "cyxla::pjrt::itemsize"(int32_t element_type) noexcept

cdef extern from "pjrt/ffi/host_callback.h" namespace "cyxla::pjrt" nogil:
    cdef cppclass Dimensions "std::span<const std::int64_t>":
        size_t size()
        int64_t operator[](size_t i)
    cdef cppclass HostArray:
        void* data
        int32_t element_type
        Dimensions dimensions
        size_t size_bytes
    cdef cppclass HostCall:
        uint64_t function()
        size_t num_arguments()
        size_t num_results()
        HostArray argument(size_t i)
        HostArray result(size_t i)
    cdef cppclass HostCallError:
        char* data()
        size_t size()
    cdef cppclass HostCallbackTargets "std::array<const char*, 2>":
        size_t size()
        const char* operator[](size_t i)
    const HostCallbackTargets kHostCallbackTargets
    void host_callback_handler()

cdef extern from "runtime/host_callbacks.h" namespace "cyxla::runtime" nogil:
    cdef cppclass Host:
        cpp_bool (*call)(const HostCall& call, HostCallError& error, uint64_t& failure) noexcept
        void* (*step_back)()
        void (*step_in)(void* state)
        void (*forget)(uint64_t failure) noexcept
    void set_host(const Host& host) noexcept
    void expect_failure() noexcept
    uint64_t take_failure() noexcept

cdef extern from "pjrt/named_value.h" namespace "cyxla::pjrt" nogil:
    cdef cppclass NamedValues:
        pass

cdef extern from "pjrt/compile_options.h" namespace "cyxla::pjrt" nogil:
    cdef cppclass OptionOverrides:
        pass

cdef extern from "_native/host_callbacks.hpp" namespace "cyxla::glue":
    cdef cppclass SharedReference "std::shared_ptr<const void>":
        pass
    SharedReference shared_reference(object kept) except +
    int release_dropped()
    void* give_up_gil() nogil
    void take_gil(void* state) nogil

cdef extern from "_native/interrupts.hpp" namespace "cyxla::glue" nogil:
    unsigned long main_thread
    cdef cppclass WaitLength:
        pass
    cdef cppclass InterruptibleWait:
        void begin(WaitLength& length, const char* notice) noexcept
        void end() noexcept

cdef extern from "runtime/signature.h" namespace "cyxla::runtime" nogil:
    cdef cppclass CoreArrayType "cyxla::runtime::ArrayType":
        int32_t element_type
        vector[int64_t] dimensions

    cdef cppclass Signature:
        string name
        vector[CoreArrayType] inputs
        vector[CoreArrayType] outputs
        vector[string] input_names
        vector[string] output_names
        cpp_bool needs_python
        cpp_bool marks_donation
        vector[size_t] in_place_outputs
        SharedReference host_callbacks

cdef extern from "<optional>" namespace "std" nogil:
    cdef cppclass OptionalInt "std::optional<std::int64_t>":
        pass
    cdef cppclass OptionalDouble "std::optional<double>":
        pass
    cdef cppclass OptionalSize "std::optional<std::size_t>":
        void emplace(size_t value)
        cpp_bool has_value()
        size_t value()
    cdef cppclass OptionalTripCount "std::optional<std::uint64_t>":
        cpp_bool has_value()
        uint64_t value()

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char* data, size_t size)

cdef extern from "direct/read/program_facts.h" namespace "cyxla::direct" nogil:
    cdef enum class ElementType:
        pass
    cdef cppclass Product:
        ElementType element_type
        double batch
        double m
        double k
        double n
        cpp_bool is_lhs_transposed
        cpp_bool is_rhs_transposed
    cdef cppclass ProgramFacts:
        vector[Product] products
        vector[string] obstacles
        size_t num_instructions
        double work
    cdef cppclass OptionalFacts "std::optional<cyxla::direct::ProgramFacts>":
        cpp_bool has_value()
        const ProgramFacts& value()

cdef extern from "runtime/program_file.h" namespace "cyxla::runtime" nogil:
    cdef cppclass CoreNamedArray "cyxla::runtime::NamedArray":
        string name
        CoreArrayType type

    cdef cppclass CoreProgramFile "cyxla::runtime::ProgramFile":
        string name
        string platform
        string artifact
        string text
        vector[CoreNamedArray] inputs
        vector[CoreNamedArray] outputs
        vector[string] custom_call_targets
        OptionalDouble flops
        string stablehlo_version
        string jax_version
        string cyxla_version

cdef extern from "runtime/error_log.h" namespace "cyxla::runtime" nogil:
    cdef cppclass CoreErrorInfo "cyxla::runtime::ErrorInfo":
        uint64_t count
        string message
    CoreErrorInfo core_error_info "cyxla::runtime::error_info"() except +
    size_t core_last_error "cyxla::runtime::last_error"(char* buffer, size_t size) noexcept
    int32_t core_last_error_number "cyxla::runtime::last_error_number"() noexcept
    void core_clear_error "cyxla::runtime::clear_error"() noexcept

cdef extern from "runtime/execute.h" namespace "cyxla::runtime" nogil:
    int core_execute "cyxla::runtime::execute"(
        const ProgramSpec* spec, const Input* inputs, void* const* outputs, int zero_copy) noexcept
    Call* core_prepare "cyxla::runtime::prepare"(
        const ProgramSpec* spec, const Input* inputs, void* const* outputs, int zero_copy) noexcept
    int core_call "cyxla::runtime::call"(Call* prepared) noexcept
    int core_rebind "cyxla::runtime::rebind"(Call* prepared, size_t index, const void* address) noexcept
    void core_discard "cyxla::runtime::discard"(Call* prepared) noexcept

cdef extern from "runtime/references.h" namespace "cyxla::runtime" nogil:
    void core_retain "cyxla::runtime::retain"(const ProgramSpec* spec) noexcept
    void core_release "cyxla::runtime::release"(const ProgramSpec* spec) noexcept
    void core_drop "cyxla::runtime::drop"(const ProgramSpec* spec) noexcept

cdef extern from "runtime/function_table.h" namespace "cyxla::runtime":
    Api make_function_table(const ProgramSpec* (*program_spec)(void*) except NULL) noexcept

cdef extern from "runtime/runtime.h" namespace "cyxla::runtime" nogil:
    cdef cppclass MemoryStatistics "cyxla::pjrt::MemoryStatistics":
        OptionalInt code_bytes
        OptionalInt argument_bytes
        OptionalInt output_bytes
        OptionalInt temporary_bytes
    cdef cppclass CoreStatistics "cyxla::runtime::CompileStatistics":
        double seconds
        MemoryStatistics memory
        OptionalDouble flops
        OptionalInt instructions
    cdef cppclass Capabilities:
        cpp_bool aliased_inputs
        cpp_bool inplace_outputs
    cdef cppclass ApiVersion "cyxla::pjrt::ApiVersion":
        int major
        int minor
    cdef cppclass PluginApi "cyxla::pjrt::Api":
        ApiVersion version()
    cdef cppclass FfiVersion "cyxla::pjrt::FfiVersion":
        int major
        int minor
    cdef cppclass FfiRegistration "cyxla::pjrt::FfiRegistration":
        FfiVersion handler_version
        FfiVersion plugin_version
        cpp_bool adapted
    cdef cppclass GpuHandler "cyxla::pjrt::GpuHandler":
        int api_version
        void* instantiate
        void* prepare
        void* initialize
        void* execute
    cdef cppclass Plugin "cyxla::pjrt::Plugin":
        const PluginApi& api()
        const NamedValues& attributes()
    cdef cppclass Client "cyxla::pjrt::Client":
        const string& platform_name()
        const string& platform_version()
    cdef cppclass DeviceDescription "cyxla::pjrt::DeviceDescription":
        string kind
        string debug_string
        NamedValues attributes
        size_t num_addressable
    cdef cppclass Program:
        const ProgramSpec& spec()
        const string& route_reason()
        cpp_bool is_short()
        const OptionalFacts& facts()
        const Signature& signature()
        @staticmethod
        Program& of(const ProgramSpec& spec)
    cdef enum class Route "cyxla::runtime::RouteRequest::Route":
        kAuto
        kPjrt
        kDirect
    cdef cppclass RouteRequest:
        Route route
        string reason
        cpp_bool may_fork
    cdef cppclass CoreRequest "cyxla::runtime::CompileRequest":
        string code
        string format
        OptionOverrides overrides
        string base_options
        Signature signature
        RouteRequest route
        cpp_bool keeps_serialized
    cdef cppclass ProgramReference:
        Program* get() noexcept
        Program* release() noexcept
    cdef cppclass CoreCompiled "cyxla::runtime::Compiled":
        ProgramReference program
        CoreStatistics statistics
        string serialized
    cdef cppclass LoadRequest:
        string path
        NamedValues options
        OptionalSize threads

cdef extern from "_native/glue.hpp" namespace "cyxla::glue":
    void set_exception_class(ErrorCode code, object exception_class)
    void translate_exception()
    void raise_last_error()
    void set_value[Map, Value](Map& map, const string& name, Value value) except +
    void set_optional(OptionalDouble& target, double value) noexcept
    object named_values_to_python(const NamedValues& values)
    object optional_to_python(const OptionalInt& value)
    object optional_to_python(const OptionalDouble& value)

cdef extern from "runtime/runtime.h" namespace "cyxla::runtime" nogil:
    cdef cppclass Runtime:
        @staticmethod
        Runtime& load(LoadRequest request) except +translate_exception
        @staticmethod
        Runtime* get() noexcept
        @staticmethod
        void shut_down() noexcept
        const Plugin& plugin()
        const Client& client()
        Capabilities capabilities()
        CoreCompiled compile(CoreRequest request) except +translate_exception
        CoreCompiled load_compiled(CoreRequest request) except +translate_exception
        DeviceDescription describe_device() except +translate_exception
        string direct_refusal(cpp_bool may_fork) except +translate_exception
        string serialize(const Program& program) except +translate_exception
        FfiRegistration register_ffi_handler(const string& target, const string& platform,
                                             void* handler) except +translate_exception
        void register_gpu_custom_call(const string& target, const GpuHandler& handler) except +translate_exception

cdef extern from "runtime/program_file.h" namespace "cyxla::runtime" nogil:
    string core_write_program_file "cyxla::runtime::write_program_file"(
        const CoreProgramFile& program) except +translate_exception
    CoreProgramFile core_read_program_file "cyxla::runtime::read_program_file"(
        string_view bytes) except +translate_exception

cdef extern from "direct/plan.h" namespace "cyxla::direct" nogil:
    cdef enum class AllocationKind "cyxla::direct::Allocation::Kind":
        kInput
        kOutput
        kConstant
        kPrivate
    cdef cppclass CoreAllocation "cyxla::direct::Allocation":
        AllocationKind kind
        size_t size_bytes
        size_t number
        OptionalSize copied_input
        string bytes
    cdef cppclass CoreSlice "cyxla::direct::Slice":
        size_t allocation
        size_t offset
        size_t size_bytes
    cdef cppclass CoreStep "cyxla::direct::Step":
        pass
    cdef cppclass CoreKernelStep "cyxla::direct::KernelStep":
        size_t kernel
        vector[CoreSlice] slices
    cdef cppclass CopyDimension "cyxla::direct::CopyStep::Dimension":
        size_t size
        size_t source_stride_bytes
        size_t destination_stride_bytes
    cdef cppclass CoreCopyStep "cyxla::direct::CopyStep":
        CoreSlice source
        CoreSlice destination
        size_t element_bytes
        vector[CopyDimension] dimensions
    cdef cppclass CoreWhileStep "cyxla::direct::WhileStep":
        vector[CoreStep] condition
        vector[CoreStep] body
        CoreSlice condition_result
        OptionalTripCount trip_count
    cdef cppclass CoreConditionalStep "cyxla::direct::ConditionalStep":
        CoreSlice index
        cpp_bool is_predicate
        vector[vector[CoreStep]] branches
    cdef cppclass CorePlan "cyxla::direct::Plan":
        vector[CoreAllocation] allocations
        vector[size_t] inputs
        vector[size_t] outputs
        vector[string] kernels
        vector[CoreStep] steps
        cpp_bool has_unbounded_loop

cdef extern from "_native/plan.hpp" namespace "cyxla::glue" nogil:
    CorePlan plan_of(const string& serialized, vector[size_t] input_bytes,
                     vector[size_t] output_bytes) except +translate_exception
    const Kind* step_if[Kind](const CoreStep& step) noexcept
