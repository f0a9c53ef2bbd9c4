"""The guest side: runs the steps of one boot of one cell and reports each as it ends.

Standard library only. It never imports agelab; the JSON plan and the JSON lines are the contract.
"""
