# tn_plugin(NAME cpu SOURCES a.c b.c [LIBS ...] [OPTIONS ...] [DEFINITIONS ...] [ABI_MIN n] [ABI_TARGET n])
#
# Builds NAME.so: a module that exports tn_plugin_v1 and nothing else, has nothing undefined, is read-only after
# loading, and is never unloaded. The target is called plugin_NAME. In a project of your own:
#
#     find_package(Tenon REQUIRED)
#     tn_plugin(NAME acme SOURCES acme.c)
#     install(TARGETS plugin_acme LIBRARY DESTINATION ${TENON_PLUGIN_DIR})
#
# Whatever the umask, group and others may not write the file and the build's folders that it lies in, since the host
# would refuse it; folders above the build are yours.
#
# ABI_MIN is the minor the plugin needs, ABI_TARGET the newest it may use where TN_HAS says so.
include_guard(GLOBAL)

set(TENON_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/tenon-plugin.map)

function(tn_plugin)
    cmake_parse_arguments(P "" "NAME;ABI_MIN;ABI_TARGET" "SOURCES;LIBS;OPTIONS;DEFINITIONS" ${ARGN})
    if(NOT P_NAME OR NOT P_SOURCES OR P_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "tn_plugin(NAME name SOURCES files ...): got \"${ARGN}\"")
    endif()
    if(NOT P_NAME MATCHES "^[a-z][a-z0-9-]*$")
        message(FATAL_ERROR "tn_plugin: the name \"${P_NAME}\" may hold a-z, 0-9 and - only")
    endif()
    if("${P_OPTIONS} ${CMAKE_C_FLAGS}" MATCHES "tls-model=initial-exec")
        message(FATAL_ERROR "tn_plugin(${P_NAME}): -ftls-model=initial-exec takes static TLS, of which "
                            "a process that loads plugins has next to nothing")
    endif()

    set(target plugin_${P_NAME})
    add_library(${target} MODULE ${P_SOURCES})
    set_target_properties(${target} PROPERTIES
        PREFIX "" SUFFIX ".so" OUTPUT_NAME ${P_NAME} C_VISIBILITY_PRESET hidden
        C_STANDARD 11 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON
        LINK_DEPENDS ${TENON_PLUGIN_MAP})
    if(TN_PLUGIN_OUTPUT_DIR)
        set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${TN_PLUGIN_OUTPUT_DIR})
    endif()
    target_compile_options(${target} PRIVATE ${P_OPTIONS})
    target_compile_definitions(${target} PRIVATE ${P_DEFINITIONS})
    if(DEFINED P_ABI_MIN)
        target_compile_definitions(${target} PRIVATE TN_ABI_MIN=${P_ABI_MIN})
    endif()
    if(DEFINED P_ABI_TARGET)
        target_compile_definitions(${target} PRIVATE TN_ABI_TARGET=${P_ABI_TARGET})
    endif()
    if(NOT DEFINED TN_LINK_DEFS)
        set(TN_LINK_DEFS -Wl,-z,defs)
    endif()
    target_link_libraries(${target} PRIVATE Tenon::plugin ${P_LIBS})
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${TENON_PLUGIN_MAP} -Wl,--exclude-libs,ALL ${TN_LINK_DEFS}
        -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,nodelete -Wl,--build-id=sha1 -Wl,--as-needed)

    set(folder ${CMAKE_CURRENT_BINARY_DIR})
    set(folders $<TARGET_FILE_DIR:${target}>)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${folder} inside)
    while(inside)
        list(APPEND folders ${folder})
        cmake_path(GET folder PARENT_PATH folder)
        cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${folder} inside)
    endwhile()
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
        COMMAND sh -c "chmod go-w \"$1\"; for f; do case \"$f\" in \"$0\"|\"$0\"/*) chmod go-w \"$f\";; esac; done; true"
            ${CMAKE_BINARY_DIR} $<TARGET_FILE:${target}> ${folders})
endfunction()
