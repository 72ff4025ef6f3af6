# pip and pip3 are rocmpip in this shell. To load it at every start: rocmpip shell-init fish | source in ~/.config/fish/config.fish
if not set -q __rocmpip_before
    set -g __rocmpip_before (functions pip 2>/dev/null; functions pip3 2>/dev/null)
end
function pip --wraps=rocmpip --description 'pip, by rocmpip'
    @COMMAND@ $argv
end
function pip3 --wraps=rocmpip --description 'pip, by rocmpip'
    @COMMAND@ $argv
end
function __rocmpip_complete
    set -l words (commandline -opc) (commandline -ct)
    set -lx COMP_WORDS "$words"
    set -lx COMP_CWORD (math (count $words) - 1)
    set -lx PIP_AUTO_COMPLETE 1
    @COMMAND@ 2>/dev/null | string split --no-empty ' '
end
complete -c rocmpip -e
complete -c rocmpip -a '(__rocmpip_complete)'
