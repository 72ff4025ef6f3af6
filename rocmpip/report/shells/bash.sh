# pip and pip3 are rocmpip in this shell. To load it at every start: eval "$(rocmpip shell-init bash)" in ~/.bashrc
if [ -z "${_ROCMPIP_BEFORE+kept}" ]; then
  _ROCMPIP_BEFORE="$({ alias pip; alias pip3; complete -p pip; complete -p pip3; complete -p rocmpip; } 2>/dev/null || :)"
fi
alias pip=@ALIAS@ pip3=@ALIAS@
_rocmpip_complete() {
  local IFS=$' \t\n'
  COMPREPLY=( $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD PIP_AUTO_COMPLETE=1 @COMMAND@ 2>/dev/null) )
}
complete -o default -F _rocmpip_complete rocmpip pip pip3
