# Called by cpack when the files of a package lie ready, before they are packed. Each .deb gets its copyright, its list
# of changes and compressed manual pages; where the libraries lie in the system's folders no run path is needed. The
# tarball gets the licence.
set(top ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    file(COPY ${CPACK_TN_LICENSE} ${CPACK_TN_COPYRIGHT} ${CPACK_TN_CHANGES} DESTINATION ${top}/share/doc/tenon)
    return()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(package IN LISTS CPACK_TN_PACKAGES)
    set(root ${top}/${package}/usr)
    set(doc ${root}/share/doc/${package})
    file(COPY ${CPACK_TN_COPYRIGHT} DESTINATION ${doc})
    file(WRITE ${doc}/changelog.Debian
         "tenon (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
         "  * See changelog.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    configure_file(${CPACK_TN_CHANGES} ${doc}/changelog COPYONLY)
    if(package STREQUAL "libtenon-dev") # a plugin is built with these, so its flags hold them
        file(WRITE ${root}/share/lintian/overrides/${package}
             "${package}: pkg-config-bad-directive -fPIC *\n${package}: pkg-config-bad-directive -fvisibility=hidden *\n")
        file(CHMOD_RECURSE ${root}/share/lintian FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
             DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
    if(package STREQUAL "tenon-plugin-cpu-openblas")
        # Debian's list maps every build of OpenBLAS to libopenblas0, which brings the one with threads of its own.
        file(WRITE ${top}/${package}/debian/shlibs.local "libopenblas 0 libopenblas0-openmp\n")
    endif()
    file(GLOB_RECURSE text ${root}/share/man/*.[1-9] ${doc}/changelog ${doc}/changelog.Debian)
    foreach(file IN LISTS text)
        execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(CHMOD_RECURSE ${doc} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
         DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    file(GLOB binaries ${root}/bin/* ${root}/lib/*.so.*.* ${root}/lib/*/*.so.*.* ${root}/lib/tenon/*.so ${root}/lib/*/tenon/*.so)
    foreach(file IN LISTS binaries)
        if(NOT IS_SYMLINK ${file})
            file(RPATH_REMOVE FILE ${file})
        endif()
    endforeach()
endforeach()
